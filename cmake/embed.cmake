# Files that become part of a program: pages, style sheets, tables.
include_guard()
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(CEEMS_EMBED ${CMAKE_CURRENT_LIST_DIR}/embed.py)

# ceems_embed(OUT [LIST] HEADER header NAMESPACE name FILES file ...)
# Sets OUT to a source that defines one std::string_view per file, in the order of the files. HEADER, relative to src/, declares them:
# `extern const std::string_view kLoginHtml;` for login.html. With LIST, it declares files(), which returns all of them.
function(ceems_embed out)
  cmake_parse_arguments(ARG "LIST" "HEADER;NAMESPACE" "FILES" ${ARGN})
  set(kind texts)
  if(ARG_LIST)
    set(kind list)
  endif()
  string(REGEX REPLACE "[/.]" "_" name ${ARG_HEADER})
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc)
  add_custom_command(
    OUTPUT ${source}
    COMMAND Python3::Interpreter ${CEEMS_EMBED} ${kind} ${source} ${ARG_HEADER} ${ARG_NAMESPACE} ${ARG_FILES}
    DEPENDS ${CEEMS_EMBED} ${ARG_FILES}
    VERBATIM)
  ceems_embedded_source(${source})
  set(${out} ${source} PARENT_SCOPE)
endfunction()

# A source written by embed.py: clang warns about long string literals.
function(ceems_embedded_source source)
  set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS -Wno-overlength-strings)
endfunction()
