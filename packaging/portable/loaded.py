#!/usr/bin/env python3
"""Writes the assembly of functions that load a library of the host when one of them is first called, and jump into it.

Usage: loaded.py MACHINE NAME 'libpq.so.5 [libpq.so ...]' FUNCTION... >NAME.s

For each function f of the library there are f itself and a slot. Where the library or a function is missing, the function ceems_f_missing
of loaded.c answers, or, if it does not exist, ceems_missing, which ends the program."""
import sys

machine, name, libraries, functions = sys.argv[1], sys.argv[2], sys.argv[3].split(), sys.argv[4:]

# What calls a function of which only the slot is known. Registers that may hold arguments are kept, among them rax with the number of
# vector registers of variadic functions, and x8 with the address of the result.
X86_64 = """
  mov {name}_slots+{offset}(%rip), %r11
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
  jmp *%r11"""
AARCH64 = """
  adrp x16, {name}_slots+{offset}
  ldr x16, [x16, :lo12:{name}_slots+{offset}]
  cbnz x16, 1f
  stp x29, x30, [sp, #-96]!
  mov x29, sp
  stp x0, x1, [sp, #16]
  stp x2, x3, [sp, #32]
  stp x4, x5, [sp, #48]
  stp x6, x7, [sp, #64]
  str x8, [sp, #80]
  adrp x0, {name}_library
  add x0, x0, :lo12:{name}_library
  mov w1, #{index}
  bl ceems_load_function
  mov x16, x0
  ldp x0, x1, [sp, #16]
  ldp x2, x3, [sp, #32]
  ldp x4, x5, [sp, #48]
  ldp x6, x7, [sp, #64]
  ldr x8, [sp, #80]
  ldp x29, x30, [sp], #96
1:
  br x16"""
call = {"x86_64": X86_64, "aarch64": AARCH64}[machine.split("-")[0]]

out = [".text"]
for index, function in enumerate(functions):
    out += [f"""
.weak ceems_{function}_missing
.globl {function}
.hidden {function}
.type {function}, @function
{function}:""" + call.format(name=name, offset=8 * index, index=index) + f"""
.size {function}, . - {function}"""]
out += [".section .rodata", f"{name}_sonames:"] + [f'.asciz "{library}"' for library in libraries] + ['.asciz ""']
out += [f"{name}_names:"] + [f'.asciz "{function}"' for function in functions] + ['.asciz ""']
out += [".section .data.rel.ro,\"aw\"", ".balign 8", f"{name}_library:", f".quad {name}_sonames, {name}_names, {name}_slots, {name}_missing",
        f"{name}_missing:"] + [f".quad ceems_{function}_missing" for function in functions]
out += [".bss", ".balign 8", f"{name}_slots:", f".zero {8 * len(functions)}", '.section .note.GNU-stack,"",@progbits']
print("\n".join(out))
