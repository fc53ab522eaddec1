# Build rules: one ceems_library() per folder of src/, one ceems_program() per folder of apps/.
include_guard()

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

add_library(ceems_options INTERFACE)
target_include_directories(ceems_options INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_options(
  ceems_options
  INTERFACE -Wall
            -Wextra
            -Wpedantic
            -Wshadow
            -Wconversion
            -Wnon-virtual-dtor
            -Woverloaded-virtual
            -Werror
            # g++ 12 reports std::expected and coroutine frames as maybe-uninitialized with -O2, and moved strings as
            # copied beyond their bounds (https://gcc.gnu.org/PR105329).
            $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
            $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Wno-array-bounds>
            $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Wno-stringop-overread>
            # clang sees the deprecated buffer inside libstdc++ 12's stable_sort.
            $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>
            -pthread # everywhere: precompiled headers want the same options
            -fstack-protector-strong
            -ffunction-sections
            -fdata-sections)
target_link_options(ceems_options INTERFACE -Wl,--gc-sections -Wl,-z,relro,-z,now)
find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM AND NOT CMAKE_BUILD_TYPE STREQUAL "Release")
  target_link_options(ceems_options INTERFACE -fuse-ld=mold)
endif()
if(CEEMS_SANITIZE)
  target_compile_options(ceems_options INTERFACE -fsanitize=${CEEMS_SANITIZE} -fno-omit-frame-pointer
                                                 -fno-sanitize-recover=all)
  if(CEEMS_SANITIZE MATCHES undefined AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # Its runtime opens a pipe to see whether an object can be read. Where no descriptor is left, which some tests
    # bring about, it calls good objects broken.
    target_compile_options(ceems_options INTERFACE -fno-sanitize=vptr)
  endif()
  target_link_options(ceems_options INTERFACE -fsanitize=${CEEMS_SANITIZE})
else()
  target_compile_definitions(ceems_options INTERFACE $<$<CONFIG:Release>:_FORTIFY_SOURCE=2>)
endif()

# Headers that nearly every source includes, compiled once: half of the time of an unoptimised build. Sources include what they
# use all the same; the presets tidy and fuzz build without.
option(CEEMS_PCH "Precompile headers of the standard library, {fmt} and GoogleTest" OFF)
set(CEEMS_PCH_HEADERS
    <algorithm>
    <array>
    <chrono>
    <cstdint>
    <expected>
    <filesystem>
    <functional>
    <map>
    <memory>
    <mutex>
    <optional>
    <string>
    <string_view>
    <thread>
    <utility>
    <vector>
    <fmt/format.h>)
# ceems_use_pch(TARGET lib|test): for targets that are compiled as position-independent code with {fmt}.
function(ceems_use_pch target kind)
  if(NOT CEEMS_PCH)
    return()
  endif()
  if(NOT TARGET ceems_pch_${kind})
    if(NOT EXISTS ${CMAKE_BINARY_DIR}/ceems_pch_${kind}.cc)
      # Once: a newer file would compile the headers, and everything that uses them, after every configuration.
      file(TOUCH ${CMAKE_BINARY_DIR}/ceems_pch_${kind}.cc)
    endif()
    add_library(ceems_pch_${kind} OBJECT ${CMAKE_BINARY_DIR}/ceems_pch_${kind}.cc)
    target_link_libraries(ceems_pch_${kind} PRIVATE ceems_options fmt::fmt Threads::Threads)
    target_compile_options(ceems_pch_${kind} PRIVATE -fpch-preprocess) # ccache asks for it
    set(headers ${CEEMS_PCH_HEADERS})
    if(kind STREQUAL test)
      target_link_libraries(ceems_pch_${kind} PRIVATE GTest::gmock)
      list(APPEND headers <gmock/gmock.h> <gtest/gtest.h>)
    endif()
    target_precompile_headers(ceems_pch_${kind} PRIVATE ${headers})
  endif()
  target_precompile_headers(${target} REUSE_FROM ceems_pch_${kind})
  target_compile_options(${target} PRIVATE -fpch-preprocess)
endfunction()

# Folders whose tests are worth a run under ThreadSanitizer: ctest label "concurrency" (preset tsan).
set(CEEMS_CONCURRENT_LIBRARIES base os net net_client kube exporter store api)
add_custom_target(concurrency_tests)

# ceems_library(NAME SRCS a.cc ... TESTS a_test.cc ... DEPS ceems::base ... LIBS system libraries
#               TEST_DEPS ceems::testing ...)
# Static library ceems::NAME; its tests become the program NAME_test with ctest label "unit".
function(ceems_library name)
  cmake_parse_arguments(ARG "" "" "SRCS;TESTS;DEPS;LIBS;TEST_DEPS" ${ARGN})
  set(target lib_${name})
  if(ARG_SRCS)
    add_library(${target} STATIC ${ARG_SRCS})
    target_link_libraries(${target} PUBLIC ceems_options ${ARG_DEPS} PRIVATE ${ARG_LIBS})
    ceems_use_pch(${target} lib)
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE ceems_options ${ARG_DEPS} ${ARG_LIBS})
  endif()
  add_library(ceems::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ceems_${name})
  if(CEEMS_BUILD_TESTS AND ARG_TESTS)
    add_executable(${name}_test ${ARG_TESTS})
    target_link_libraries(${name}_test PRIVATE ceems::${name} ceems::testing ${ARG_TEST_DEPS} ${ARG_LIBS}
                                               GTest::gmock GTest::gtest_main)
    if(CEEMS_PCH)
      set_target_properties(${name}_test PROPERTIES POSITION_INDEPENDENT_CODE OFF)
      target_compile_options(${name}_test PRIVATE -fPIC) # as the headers were precompiled
      ceems_use_pch(${name}_test test)
    endif()
    target_compile_definitions(
      ${name}_test PRIVATE CEEMS_TEST_ROOT="${CMAKE_SOURCE_DIR}/tests")
    add_test(NAME ${name} COMMAND ${name}_test)
    set(labels unit)
    if(name IN_LIST CEEMS_CONCURRENT_LIBRARIES)
      list(APPEND labels concurrency)
      add_dependencies(concurrency_tests ${name}_test)
    endif()
    set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT 300)
  endif()
endfunction()

# ceems_program(NAME SRCS main.cc ... DEPS ...): the program, copied to build/bin after every build.
function(ceems_program name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE ceems_options ${ARG_DEPS} ${ARG_LIBS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  if(CEEMS_PUBLISH)
    # Always run, not POST_BUILD: several presets share build/bin and the one built last must win.
    add_custom_target(
      publish_${name} ALL
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_SOURCE_DIR}/build/bin
      COMMAND ${CMAKE_COMMAND} -E copy_if_different $<TARGET_FILE:${name}> ${CMAKE_SOURCE_DIR}/build/bin/${name}
      DEPENDS ${name}
      COMMENT "build/bin/${name}")
  endif()
endfunction()

# The commit this tree is at, for --version; empty outside git.
find_package(Git QUIET)
if(GIT_FOUND)
  execute_process(
    COMMAND ${GIT_EXECUTABLE} -C ${CMAKE_SOURCE_DIR} rev-parse --short=12 HEAD
    OUTPUT_VARIABLE CEEMS_REVISION
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(
    COMMAND ${GIT_EXECUTABLE} -C ${CMAKE_SOURCE_DIR} rev-parse --abbrev-ref HEAD
    OUTPUT_VARIABLE CEEMS_BRANCH
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
