package main

import "fmt"

var sink uint64

//go:noinline
func burn(n uint64) {
	for i := uint64(0); i < n; i++ {
		sink += i
	}
}

//go:noinline
func fifty(u uint64) { burn(5 * u); sink++ }

//go:noinline
func thirty(u uint64) { burn(3 * u); sink++ }

//go:noinline
func twenty(u uint64) { burn(2 * u); sink++ }

//go:noinline
func outer() {
	for {
		fifty(20000)
		thirty(20000)
		twenty(20000)
	}
}

func main() {
	done := make(chan int)
	go func() { outer(); done <- 1 }()
	<-done
	fmt.Println(sink)
}
