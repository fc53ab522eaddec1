#!/usr/bin/env python3
"""A process that keeps a known part of an NVIDIA GPU busy for a known part of the time.

    gpu_load.py SECONDS --sms PART --duty PART --memory MIB

Needs only the driver (libcuda): the kernel is PTX that spins by the GPU's own clock, so how long it runs does not depend on the GPU.
Prints one line of JSON when it begins and one when it ends: {"sms": SMs of the GPU, "used": SMs kept busy, "kernel_s": time in
kernels, "memory": bytes that the GPU's memory lost to this process}."""

import argparse
import ctypes
import json
import sys
import time

PTX = b"""
.version 6.0
.target sm_50
.address_size 64
.visible .entry spin(.param .u64 nanoseconds)
{
  .reg .u64 %r<4>;
  .reg .pred %p;
  ld.param.u64 %r1, [nanoseconds];
  mov.u64 %r2, %globaltimer;
again:
  mov.u64 %r3, %globaltimer;
  sub.u64 %r3, %r3, %r2;
  setp.lt.u64 %p, %r3, %r1;
  @%p bra again;
  ret;
}
"""
MULTIPROCESSORS = 16  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
PERIOD = 1.0  # seconds; in each, the kernel runs for the duty


def check(result, what):
    if result != 0:
        sys.exit("gpu_load: %s failed with CUDA error %d" % (what, result))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("seconds", type=float)
    parser.add_argument("--sms", type=float, default=1.0, help="part of the SMs")
    parser.add_argument("--duty", type=float, default=1.0, help="part of the time")
    parser.add_argument("--memory", type=int, default=0, help="MiB to allocate")
    options = parser.parse_args()
    cuda = ctypes.CDLL("libcuda.so.1")
    check(cuda.cuInit(0), "cuInit")
    device, context, module, function = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    check(cuda.cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet")
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
    check(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
    count = ctypes.c_int()
    check(cuda.cuDeviceGetAttribute(ctypes.byref(count), MULTIPROCESSORS, device), "cuDeviceGetAttribute")
    check(cuda.cuModuleLoadData(ctypes.byref(module), PTX), "cuModuleLoadData")
    check(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"spin"), "cuModuleGetFunction")
    if options.memory:
        address = ctypes.c_uint64()
        check(cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(options.memory << 20)), "cuMemAlloc")
    used = max(1, round(options.sms * count.value))
    print(json.dumps({"sms": count.value, "used": used, "begin": time.time()}), flush=True)

    in_kernels = 0.0
    end = time.monotonic() + options.seconds
    while (now := time.monotonic()) < end:
        if options.duty == 0:
            time.sleep(min(0.1, end - now))
            continue
        length = min(PERIOD * options.duty, end - now)
        nanoseconds = ctypes.c_uint64(int(length * 1e9))
        arguments = (ctypes.c_void_p * 1)(ctypes.addressof(nanoseconds))
        # One block of 1,024 threads fills an SM, and blocks are spread over SMs before two share one.
        check(cuda.cuLaunchKernel(function, used, 1, 1, 1024, 1, 1, 0, None, arguments, None), "cuLaunchKernel")
        check(cuda.cuCtxSynchronize(), "cuCtxSynchronize")
        in_kernels += time.monotonic() - now
        time.sleep(max(0.0, now + PERIOD - time.monotonic()) if options.duty < 1 else 0)
    print(json.dumps({"kernel_s": in_kernels, "end": time.time()}), flush=True)


if __name__ == "__main__":
    main()
