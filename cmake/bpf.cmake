# Programs for the kernel (eBPF), which clang compiles and the program that loads them carries.
include_guard()
find_program(BPF_CLANG NAMES clang-19 REQUIRED)
find_program(BPF_TOOL NAMES bpftool PATHS /usr/sbin /sbin REQUIRED)

# ceems_bpf(OUT HEADER header NAMESPACE name DEPENDS header ... SOURCES x.bpf.c ...)
# Sets OUT to a C++ source with one object file per source, as ceems_embed() would define it: kXBpfO. bpftool leaves out the debug
# information, which names the folder of the build.
function(ceems_bpf out)
  cmake_parse_arguments(ARG "" "HEADER;NAMESPACE" "DEPENDS;SOURCES" ${ARGN})
  set(machine_x86_64 x86)
  set(machine_aarch64 arm64)
  set(objects)
  foreach(source ${ARG_SOURCES})
    get_filename_component(name ${source} NAME_WLE)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.o)
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${BPF_CLANG} --target=bpf -mcpu=v2 -O2 -g -Wall -Wextra -Werror -fno-ident
              -ffile-prefix-map=${CMAKE_SOURCE_DIR}=. -D__TARGET_ARCH_${machine_${CMAKE_SYSTEM_PROCESSOR}}
              -I${CMAKE_SOURCE_DIR}/src -c ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${object}.debug
      COMMAND ${BPF_TOOL} gen object ${object} ${object}.debug
      DEPENDS ${source} ${ARG_DEPENDS}
      VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  ceems_embed(embedded HEADER ${ARG_HEADER} NAMESPACE ${ARG_NAMESPACE} FILES ${objects})
  set(${out} ${embedded} PARENT_SCOPE)
endfunction()
