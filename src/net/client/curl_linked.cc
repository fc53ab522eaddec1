// Replaces curl_library.cc in programs that have libcurl inside (CEEMS_PORTABLE).
#include "net/client/curl_library.h"

namespace ceems::net {
namespace {

constexpr CurlLibrary kLibrary{.global_init = &::curl_global_init,
                               .free = &::curl_free,
                               .easy_init = &::curl_easy_init,
                               .easy_cleanup = &::curl_easy_cleanup,
                               .easy_reset = &::curl_easy_reset,
                               .easy_setopt = &::curl_easy_setopt,
                               .easy_getinfo = &::curl_easy_getinfo,
                               .easy_strerror = &::curl_easy_strerror,
                               .multi_init = &::curl_multi_init,
                               .multi_cleanup = &::curl_multi_cleanup,
                               .multi_wakeup = &::curl_multi_wakeup,
                               .multi_add_handle = &::curl_multi_add_handle,
                               .multi_remove_handle = &::curl_multi_remove_handle,
                               .multi_perform = &::curl_multi_perform,
                               .multi_poll = &::curl_multi_poll,
                               .multi_info_read = &::curl_multi_info_read,
                               .slist_append = &::curl_slist_append,
                               .slist_free_all = &::curl_slist_free_all,
                               .url = &::curl_url,
                               .url_cleanup = &::curl_url_cleanup,
                               .url_get = &::curl_url_get,
                               .url_set = &::curl_url_set,
                               .url_strerror = &::curl_url_strerror,
                               .easy_perform = &::curl_easy_perform};

}  // namespace

Result<> load_curl() {
  static const CURLcode kStatus = ::curl_global_init(CURL_GLOBAL_DEFAULT);
  if (kStatus != CURLE_OK) {
    return fail(ErrorCode::kInternal, "libcurl cannot be initialised");
  }
  return {};
}

const CurlLibrary& curl() {
  return kLibrary;
}

}  // namespace ceems::net
