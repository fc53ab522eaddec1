// SPDX-License-Identifier: GPL-2.0-or-later
// A program that does nothing, where the exporter's counts: the least that any can cost.
char LICENSE[] __attribute__((section("license"), used)) = "GPL";

__attribute__((section("fexit/vfs_write"), used)) int empty(void* context) {
  (void)context;
  return 0;
}
