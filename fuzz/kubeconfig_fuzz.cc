// kubeconfig files.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "kube/kubeconfig.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the fuzzer's bytes as text
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto access = ceems::kube::parse_kubeconfig(text, "/etc/kubeconfig");
  if (access) {
    CEEMS_CHECK(access->server.find("://") != std::string::npos);
  } else {
    CEEMS_CHECK(!access.error().message.empty());
  }
  return 0;
}
