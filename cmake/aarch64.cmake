# Compiles for arm64 on another machine: the preset package-arm64. packaging/portable/sysroot makes Debian 12's headers and libraries of arm64.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../build/arm64/sysroot)
file(REAL_PATH ${CMAKE_SYSROOT} CMAKE_SYSROOT)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc-12)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++-12)
# Start code and libraries of the compiler are those of the sysroot, too, so that the bill of materials names all versions.
set(CMAKE_C_FLAGS_INIT "-B${CMAKE_SYSROOT}/usr/lib/gcc/aarch64-linux-gnu/12/ -B${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/")
set(CMAKE_CXX_FLAGS_INIT ${CMAKE_C_FLAGS_INIT})
# Programs that the build runs are this machine's; all else is of the sysroot.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
