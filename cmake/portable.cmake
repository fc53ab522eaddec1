# Links programs that run on every Linux with glibc 2.28 or newer: with old versions of glibc's functions, and with everything else inside.
# packaging/portable/build makes what they are linked with. Only links differ: objects are compiled as without CEEMS_PORTABLE.
include_guard()

set(CEEMS_PORTABLE_DIR ${CMAKE_SOURCE_DIR}/build/portable CACHE PATH "What packaging/portable/build made")
set(portable_lib ${CEEMS_PORTABLE_DIR}/lib)
if(NOT EXISTS ${portable_lib}/libcurl.a)
  message(FATAL_ERROR "${portable_lib}/libcurl.a is missing: run packaging/portable/build ${CEEMS_PORTABLE_DIR}")
endif()
set(CMAKE_SKIP_RPATH ON)

# ceems_link_archive(TARGET FILE): links FILE in the place of the library of an imported target.
function(ceems_link_archive target file)
  if(NOT EXISTS ${file})
    message(FATAL_ERROR "${file} is missing")
  endif()
  get_target_property(kind ${target} TYPE)
  if(kind STREQUAL INTERFACE_LIBRARY) # of pkg_check_modules
    set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES ${file})
    return()
  endif()
  get_target_property(configurations ${target} IMPORTED_CONFIGURATIONS)
  foreach(configuration "" ${configurations})
    if(configuration)
      string(PREPEND configuration _)
    endif()
    set_target_properties(${target} PROPERTIES IMPORTED_LOCATION${configuration} ${file})
  endforeach()
endfunction()

function(ceems_find_archive name result)
  # First here: Debian has a libcurl.a with more in it.
  find_library(CEEMS_ARCHIVE_${name} NAMES lib${name}.a PATHS ${portable_lib} NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
  find_library(CEEMS_ARCHIVE_${name} NAMES lib${name}.a REQUIRED)
  set(${result} ${CEEMS_ARCHIVE_${name}} PARENT_SCOPE)
endfunction()

set(portable_archives)
foreach(pair
    fmt::fmt=fmt spdlog::spdlog=spdlog date::date-tz=date-tz PkgConfig::SIMDJSON=simdjson yaml-cpp=yaml-cpp pugixml::pugixml=pugixml
    SQLite::SQLite3=sqlite3 Boost::json=boost_json Boost::container=boost_container OpenSSL::SSL=ssl OpenSSL::Crypto=crypto
    ZLIB::ZLIB=z PkgConfig::ZSTD=zstd PkgConfig::RE2=re2 PkgConfig::LIBCAP=cap PkgConfig::LIBPQ=loaded PkgConfig::XLSXWRITER=xlsxwriter)
  string(REPLACE "=" ";" pair ${pair})
  list(GET pair 0 target)
  list(GET pair 1 name)
  ceems_find_archive(${name} archive)
  if(TARGET ${target})
    ceems_link_archive(${target} ${archive})
  endif()
  list(APPEND portable_archives ${archive})
endforeach()
foreach(name curl nghttp2 ca_file)
  ceems_find_archive(${name} archive)
  list(APPEND portable_archives ${archive})
endforeach()

# Archives use each other, in any order.
list(JOIN portable_archives " " portable_archives)
string(APPEND CMAKE_CXX_STANDARD_LIBRARIES " -Wl,--start-group ${portable_archives} -Wl,--end-group")
# -lcrypt of the programs finds an empty one here; loaded.c loads the host's.
file(WRITE ${CMAKE_BINARY_DIR}/portable/libcrypt.so "/* loaded at run time */\n")
add_link_options(
  -L${CMAKE_BINARY_DIR}/portable
  -L${CEEMS_PORTABLE_DIR}/glibc
  -static-libstdc++
  -static-libgcc
  -Wl,--exclude-libs,ALL
  -Wl,--wrap=__libc_start_main
  -Wl,--wrap=X509_get_default_cert_file
  -Wl,--build-id=sha1
  -Wl,--no-as-needed,-l:libpthread.so.0,-l:libdl.so.2,-l:librt.so.1,--as-needed
  -s)
