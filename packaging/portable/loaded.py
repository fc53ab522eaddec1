#!/usr/bin/env python3
"""Writes the assembly of functions that load a library of the host when one of them is first called, and jump into it.

Usage: loaded.py NAME 'libpq.so.5 [libpq.so ...]' FUNCTION... >NAME.s

For each function f of the library there are f itself and a slot. Where the library or a function is missing, the function ceems_f_missing
of loaded.c answers, or, if it does not exist, ceems_missing, which ends the program."""
import sys

name, libraries, functions = sys.argv[1], sys.argv[2].split(), sys.argv[3:]
out = [".text"]
for index, function in enumerate(functions):
    # Registers that may hold arguments, rax with the number of vector registers of variadic functions among them, are kept.
    out += [f"""
.weak ceems_{function}_missing
.globl {function}
.hidden {function}
.type {function}, @function
{function}:
  mov {name}_slots+{8 * index}(%rip), %r11
  test %r11, %r11
  jne 1f
  push %rdi
  push %rsi
  push %rdx
  push %rcx
  push %r8
  push %r9
  push %rax
  lea {name}_library(%rip), %rdi
  mov ${index}, %esi
  call ceems_load_function
  mov %rax, %r11
  pop %rax
  pop %r9
  pop %r8
  pop %rcx
  pop %rdx
  pop %rsi
  pop %rdi
1:
  jmp *%r11
.size {function}, . - {function}"""]
out += [".section .rodata", f"{name}_sonames:"] + [f'.asciz "{library}"' for library in libraries] + ['.asciz ""']
out += [f"{name}_names:"] + [f'.asciz "{function}"' for function in functions] + ['.asciz ""']
out += [".section .data.rel.ro,\"aw\"", ".balign 8", f"{name}_library:", f".quad {name}_sonames, {name}_names, {name}_slots, {name}_missing",
        f"{name}_missing:"] + [f".quad ceems_{function}_missing" for function in functions]
out += [".bss", ".balign 8", f"{name}_slots:", f".zero {8 * len(functions)}", '.section .note.GNU-stack,"",@progbits']
print("\n".join(out))
