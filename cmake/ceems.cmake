# Build rules: one ceems_library() per folder of src/, one ceems_program() per folder of apps/.
include_guard()

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(CEEMS_SYNTAX_ONLY)
  # Sources are read and checked, but not compiled: an empty file stands for each object, library and program. Precompiled headers are
  # compiled, by what follows -fsyntax-only in their options.
  set(CMAKE_CXX_COMPILE_OBJECT
      "<CMAKE_CXX_COMPILER> <DEFINES> <INCLUDES> <FLAGS> -o <OBJECT> -c <SOURCE>" "${CMAKE_COMMAND} -E touch <OBJECT>")
  set(CMAKE_CXX_CREATE_STATIC_LIBRARY "${CMAKE_COMMAND} -E touch <TARGET>")
  set(CMAKE_CXX_LINK_EXECUTABLE "${CMAKE_COMMAND} -E touch <TARGET>")
endif()
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CEEMS_SYNTAX_ONLY AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
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
            $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
            $<$<COMPILE_LANGUAGE:CXX>:-Woverloaded-virtual>
            # An optimised build, which users make, does not fail because of what another compiler warns of; the preset gcc does.
            $<$<NOT:$<CONFIG:Release>>:-Werror>
            # g++ 12 with -O2 wrongly reports std::expected and coroutine frames as maybe-uninitialized, and moved
            # strings as copied beyond their bounds (https://gcc.gnu.org/PR105329).
            $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
            $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Wno-array-bounds>
            $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Wno-stringop-overread>
            # In sources that are compiled as one, g++ takes each for a header, whose types should not use unnamed namespaces.
            $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<BOOL:${CEEMS_UNITY}>>:-Wno-subobject-linkage>
            # clang reports the deprecated buffer inside libstdc++ 12's stable_sort.
            $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>
            $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety> # see base/mutex.h
            # Part of clang's -Wconversion, but not of g++'s.
            $<$<CXX_COMPILER_ID:Clang>:-Wno-sign-conversion>
            -pthread # for all targets, because precompiled headers require identical options
            -fstack-protector-strong
            -ffunction-sections
            -fdata-sections)
# These headers are precompiled, so every source is compiled with the options that they need.
target_link_libraries(ceems_options INTERFACE fmt::fmt Threads::Threads)
target_link_options(ceems_options INTERFACE -Wl,--gc-sections -Wl,-z,relro,-z,now)
find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM AND NOT CMAKE_BUILD_TYPE STREQUAL "Release")
  target_link_options(ceems_options INTERFACE -fuse-ld=mold)
endif()
if(CEEMS_SANITIZE)
  target_compile_options(ceems_options INTERFACE -fsanitize=${CEEMS_SANITIZE} -fno-omit-frame-pointer
                                                 -fno-sanitize-recover=all)
  if(CEEMS_SANITIZE MATCHES undefined AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # The runtime opens a pipe to test whether an object is readable. Without free descriptors, which some tests cause,
    # it reports valid objects as broken.
    target_compile_options(ceems_options INTERFACE -fno-sanitize=vptr)
  endif()
  target_link_options(ceems_options INTERFACE -fsanitize=${CEEMS_SANITIZE})
  if(CEEMS_SANITIZE MATCHES undefined)
    # UBSan is for what the tests call. Without it and without line tables, test sources compile a quarter faster.
    set(CEEMS_TEST_OPTIONS -fno-sanitize=undefined -g0)
  endif()
else()
  target_compile_definitions(ceems_options INTERFACE $<$<CONFIG:Release>:_FORTIFY_SOURCE=2>)
endif()

# Headers that nearly every source includes are precompiled, which halves the time of an unoptimised build. Sources must still
# include what they use; the presets tidy and fuzz build without precompiled headers.
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
# ccache requires these options to cache sources that use a precompiled header.
if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
  set(CEEMS_PCH_OPTIONS "SHELL:-Xclang -fno-pch-timestamp")
else()
  set(CEEMS_PCH_OPTIONS -fpch-preprocess)
endif()
# ceems_use_pch(TARGET lib|test): for targets that are compiled as position-independent code and use {fmt}.
function(ceems_use_pch target kind)
  if(NOT CEEMS_PCH)
    return()
  endif()
  if(NOT TARGET ceems_pch_${kind})
    if(NOT EXISTS ${CMAKE_BINARY_DIR}/ceems_pch_${kind}.cc)
      # Only once: a newer file would recompile the headers, and everything that uses them, after every configuration.
      file(TOUCH ${CMAKE_BINARY_DIR}/ceems_pch_${kind}.cc)
    endif()
    add_library(ceems_pch_${kind} OBJECT ${CMAKE_BINARY_DIR}/ceems_pch_${kind}.cc)
    target_link_libraries(ceems_pch_${kind} PRIVATE ceems_options)
    target_compile_options(ceems_pch_${kind} PRIVATE ${CEEMS_PCH_OPTIONS})
    set(headers ${CEEMS_PCH_HEADERS})
    if(kind STREQUAL test)
      target_link_libraries(ceems_pch_${kind} PRIVATE GTest::gmock)
      target_compile_options(ceems_pch_${kind} PRIVATE ${CEEMS_TEST_OPTIONS})
      list(APPEND headers <gmock/gmock.h> <gtest/gtest.h>)
    endif()
    target_precompile_headers(ceems_pch_${kind} PRIVATE ${headers})
  endif()
  target_precompile_headers(${target} REUSE_FROM ceems_pch_${kind})
  target_compile_options(${target} PRIVATE ${CEEMS_PCH_OPTIONS})
endfunction()

# In all presets but tidy and fuzz, this many sources of a library or a test program are compiled as one, which takes half the time.
# Sources must still compile alone, as in those two: the names in their unnamed namespaces are unique within a folder.
set(CEEMS_UNITY 0 CACHE STRING "Number of sources of a target that are compiled as one (0: each alone)")

# src/LAYERS says which folder may include which. A folder is linked with exactly those libraries. Sets
#   CEEMS_LAYER_x_y        the libraries that the layer x/y may include
#   CEEMS_LAYER_TESTS_x_y  those that only its tests may include
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/LAYERS)
file(STRINGS ${CMAKE_SOURCE_DIR}/src/LAYERS layer_lines REGEX "^[a-z]")
foreach(line IN LISTS layer_lines)
  string(REGEX MATCH "^([^:]*):([^|=]*)[|]?([^=]*)" matched "${line}")
  set(name ${CMAKE_MATCH_1})
  set(allowed "${CMAKE_MATCH_2}")
  set(tests "${CMAKE_MATCH_3}")
  string(REPLACE "/" "_" name ${name})
  foreach(list allowed tests)
    string(REPLACE "/" "_" ${list} "${${list}}")
    string(REGEX MATCHALL "[a-z0-9_]+" ${list} "${${list}}")
    list(TRANSFORM ${list} PREPEND ceems::)
  endforeach()
  set(CEEMS_LAYER_${name} ${allowed})
  set(CEEMS_LAYER_TESTS_${name} ${tests})
endforeach()

# Fails if a folder of these sources holds one that is not among them: it would not be built, and a forgotten test would not run.
# Builds look again, so that a source is found that was added after the last configuration.
function(ceems_refuse_unlisted)
  set(patterns ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  foreach(source IN LISTS ARGN)
    if(NOT IS_ABSOLUTE ${source})
      get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR}/${source} DIRECTORY)
      list(APPEND patterns ${folder}/*.cc)
    endif()
  endforeach()
  list(REMOVE_DUPLICATES patterns)
  file(GLOB present RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS ${patterns})
  list(REMOVE_ITEM present ${ARGN})
  file(READ CMakeLists.txt list)
  foreach(source IN LISTS present) # some are for one configuration only
    string(REPLACE . "\\." name ${source})
    if(list MATCHES "[ \n(]${name}[ \n)]")
      list(REMOVE_ITEM present ${source})
    endif()
  endforeach()
  if(present)
    message(FATAL_ERROR "${CMAKE_CURRENT_SOURCE_DIR}: no list names ${present}: add it to all.h of its folder or to CMakeLists.txt")
  endif()
endfunction()

# ceems_specs(FOLDER SUFFIX [NO_TESTS]): FOLDER/all.h is the list of similar things. Each function NAME_SUFFIX() that it declares, and
# that returns a ...Spec, stands for NAME.cc, NAME_test.cc beside it (not with NO_TESTS) and a call in all.cc, made of FOLDER/all.cc.in.
# Appends them to `specs` and `spec_tests`.
function(ceems_specs folder suffix)
  cmake_parse_arguments(ARG "NO_TESTS" "" "" ${ARGN})
  string(REGEX REPLACE "^\\./$" "" prefix ${folder}/) # "." is the folder itself
  set(list ${prefix}all.h)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${list})
  file(READ ${list} text)
  string(REGEX MATCHALL "\n[A-Z][A-Za-z]+Spec [a-z0-9_]+_${suffix}\\(\\)" declarations "${text}")
  set(SPEC_CALLS)
  foreach(declaration IN LISTS declarations)
    string(REGEX REPLACE ".* (.*)_${suffix}.*" "\\1" name "${declaration}")
    set(path ${prefix}${name})
    if(IS_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/${path})
      set(path ${path}/${name})
    endif()
    set(files ${path}.cc)
    if(NOT ARG_NO_TESTS)
      list(APPEND files ${path}_test.cc)
      list(APPEND spec_tests ${path}_test.cc)
    endif()
    foreach(file ${files})
      if(NOT EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${file})
        message(FATAL_ERROR "${CMAKE_CURRENT_SOURCE_DIR}/${list} lists ${name}_${suffix}(), which needs ${file}")
      endif()
    endforeach()
    list(APPEND specs ${path}.cc)
    string(APPEND SPEC_CALLS "      ${name}_${suffix}(),\n")
  endforeach()
  configure_file(${prefix}all.cc.in ${CMAKE_CURRENT_BINARY_DIR}/${prefix}all.cc @ONLY)
  list(APPEND specs ${CMAKE_CURRENT_BINARY_DIR}/${prefix}all.cc)
  set(specs ${specs} PARENT_SCOPE)
  set(spec_tests ${spec_tests} PARENT_SCOPE)
endfunction()

# ceems_library(SRCS a.cc ... TESTS a_test.cc ... THREADED a_test.cc ... LIBS system libraries [OPTIMIZED] [COST seconds])
# Defines the folder's static library, e.g. ceems::exporter_unit for src/exporter/unit, linked with the layers that src/LAYERS
# lets it include. Its tests become the program exporter_unit_test with the ctest label "unit". THREADED names the tests that run
# several threads, in the test or in the code under test: with ThreadSanitizer (preset tsan), only these are built. OPTIMIZED libraries
# are compiled with -O1 in the presets with sanitizers, because tests spend much of their time in them. COST is about how long its tests
# run: those that take longest begin first, so that none runs alone at the end.
function(ceems_library)
  cmake_parse_arguments(ARG "OPTIMIZED" "COST" "SRCS;TESTS;THREADED;LIBS" ${ARGN})
  file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR})
  string(REPLACE "/" "_" name ${name})
  set(target lib_${name})
  ceems_refuse_unlisted(${ARG_SRCS} ${ARG_TESTS})
  if(ARG_SRCS)
    add_library(${target} STATIC ${ARG_SRCS})
    target_link_libraries(${target} PUBLIC ceems_options ${CEEMS_LAYER_${name}} PRIVATE ${ARG_LIBS})
    if(CEEMS_SYNTAX_ONLY)
      target_compile_options(${target} PRIVATE -fsyntax-only)
    endif()
    if(ARG_OPTIMIZED AND CEEMS_SANITIZE)
      target_compile_options(${target} PRIVATE -O1) # which the precompiled headers are not
    else()
      ceems_use_pch(${target} lib)
    endif()
    if(CEEMS_UNITY)
      set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${CEEMS_UNITY})
    endif()
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE ceems_options ${CEEMS_LAYER_${name}} ${ARG_LIBS})
  endif()
  add_library(ceems::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ceems_${name})
  foreach(test IN LISTS ARG_THREADED)
    if(NOT test IN_LIST ARG_TESTS)
      message(FATAL_ERROR "${CMAKE_CURRENT_SOURCE_DIR}: THREADED names ${test}, which is not in TESTS")
    endif()
  endforeach()
  if(CEEMS_SANITIZE STREQUAL "thread")
    set(fakes ${ARG_TESTS})
    list(FILTER fakes EXCLUDE REGEX "_test\\.cc$")
    set(ARG_TESTS ${ARG_THREADED})
    if(ARG_TESTS)
      list(APPEND ARG_TESTS ${fakes})
    endif()
  endif()
  if(CEEMS_BUILD_TESTS AND ARG_TESTS)
    add_executable(${name}_test ${ARG_TESTS})
    # Fakes of lower layers need the libraries that these fakes are made of.
    set(test_libraries ${CEEMS_LAYER_TESTS_${name}})
    foreach(layer IN LISTS CEEMS_LAYER_${name})
      string(REPLACE "ceems::" "" layer ${layer})
      list(APPEND test_libraries ${CEEMS_LAYER_TESTS_${layer}})
    endforeach()
    list(REMOVE_DUPLICATES test_libraries)
    target_link_libraries(${name}_test PRIVATE ceems::${name} ${test_libraries} ${ARG_LIBS} GTest::gmock
                                               GTest::gtest_main)
    target_compile_options(${name}_test PRIVATE ${CEEMS_TEST_OPTIONS})
    if(CEEMS_PCH)
      set_target_properties(${name}_test PROPERTIES POSITION_INDEPENDENT_CODE OFF)
      target_compile_options(${name}_test PRIVATE -fPIC) # like the precompiled headers
      ceems_use_pch(${name}_test test)
    endif()
    if(CEEMS_UNITY)
      set_target_properties(${name}_test PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${CEEMS_UNITY})
    endif()
    target_compile_definitions(
      ${name}_test PRIVATE CEEMS_TEST_ROOT="${CMAKE_SOURCE_DIR}/tests")
    add_test(NAME ${name} COMMAND ${name}_test)
    if(NOT ARG_COST)
      set(ARG_COST 1)
    endif()
    set_tests_properties(${name} PROPERTIES LABELS "unit;library" TIMEOUT 900 COST ${ARG_COST})
    if(NOT TARGET unit_tests)
      add_custom_target(unit_tests)
    endif()
    add_dependencies(unit_tests ${name}_test)
  endif()
endfunction()

# ceems_program(NAME SRCS main.cc ... DEPS ...): defines a program, which is copied to build/bin after every build.
function(ceems_program name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE ceems_options ${ARG_DEPS} ${ARG_LIBS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  if(CEEMS_PUBLISH)
    # This is a target and not POST_BUILD, because several presets share build/bin and the last build must win.
    add_custom_target(
      publish_${name} ALL
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_SOURCE_DIR}/build/bin
      COMMAND ${CMAKE_COMMAND} -E copy_if_different $<TARGET_FILE:${name}> ${CMAKE_SOURCE_DIR}/build/bin/${name}
      DEPENDS ${name}
      COMMENT "build/bin/${name}")
  endif()
endfunction()

# The current commit, for --version; empty outside git.
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
