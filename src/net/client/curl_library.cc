#include "net/client/curl_library.h"

#include <dlfcn.h>

#include "base/strings.h"

namespace ceems::net {
namespace {

constexpr const char* kName = "libcurl.so.4";

template <class Function>
bool find(void* handle, const char* name, Function& function) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): what dlsym is for
  function = reinterpret_cast<Function>(dlsym(handle, name));
  return function != nullptr;
}

bool find_all(void* handle, CurlLibrary& library) {
  return find(handle, "curl_global_init", library.global_init) &&
         find(handle, "curl_free", library.free) &&
         find(handle, "curl_easy_init", library.easy_init) &&
         find(handle, "curl_easy_cleanup", library.easy_cleanup) &&
         find(handle, "curl_easy_reset", library.easy_reset) &&
         find(handle, "curl_easy_setopt", library.easy_setopt) &&
         find(handle, "curl_easy_getinfo", library.easy_getinfo) &&
         find(handle, "curl_easy_perform", library.easy_perform) &&
         find(handle, "curl_easy_strerror", library.easy_strerror) &&
         find(handle, "curl_multi_init", library.multi_init) &&
         find(handle, "curl_multi_cleanup", library.multi_cleanup) &&
         find(handle, "curl_multi_wakeup", library.multi_wakeup) &&
         find(handle, "curl_multi_add_handle", library.multi_add_handle) &&
         find(handle, "curl_multi_remove_handle", library.multi_remove_handle) &&
         find(handle, "curl_multi_perform", library.multi_perform) &&
         find(handle, "curl_multi_poll", library.multi_poll) &&
         find(handle, "curl_multi_info_read", library.multi_info_read) &&
         find(handle, "curl_slist_append", library.slist_append) &&
         find(handle, "curl_slist_free_all", library.slist_free_all) &&
         find(handle, "curl_url", library.url) &&
         find(handle, "curl_url_cleanup", library.url_cleanup) &&
         find(handle, "curl_url_get", library.url_get) &&
         find(handle, "curl_url_set", library.url_set) &&
         find(handle, "curl_url_strerror", library.url_strerror);
}

/// Loads the library, which stays loaded until the program ends.
Result<CurlLibrary> load() {
  void* const handle = dlopen(kName, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc keeps the text per thread
    const char* const error = dlerror();
    return fail(ErrorCode::kNotFound, "the HTTP client cannot be loaded: {}",
                printable(error == nullptr ? kName : error, 256));
  }
  CurlLibrary library;
  if (!find_all(handle, library)) {
    return fail(ErrorCode::kNotFound, "{} is too old: 7.68 is needed", kName);
  }
  if (library.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    return fail(ErrorCode::kInternal, "{} cannot be initialised", kName);
  }
  return library;
}

const Result<CurlLibrary>& library() {
  static const Result<CurlLibrary> kLibrary = load();
  return kLibrary;
}

}  // namespace

Result<> load_curl() {
  if (!library()) {
    return fail(library().error());
  }
  return {};
}

const CurlLibrary& curl() {
  return *library();
}

}  // namespace ceems::net
