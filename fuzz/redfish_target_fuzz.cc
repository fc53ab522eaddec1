// What clients of redfish_proxy name as their BMC, and the lists that allow it.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "redfish_proxy/address_rules.h"
#include "redfish_proxy/config.h"
#include "redfish_proxy/proxy.h"

namespace proxy = ceems::redfish_proxy;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto bmc = proxy::parse_bmc_header(text)) {
    CEEMS_CHECK(bmc->origin().find_first_of(" \t\r\n/@\\", 8) == std::string::npos);
    const auto again = proxy::parse_bmc_header(bmc->origin());
    CEEMS_CHECK(again && again->origin() == bmc->origin());
  }
  if (const auto entry = proxy::AllowedTarget::parse(text)) {
    static_cast<void>(entry->names("n1.bmc.example.org"));
  }
  static const auto rules = proxy::AddressRules::all(false);
  if (rules.permit(text)) {
    CEEMS_CHECK(text.find("127.") != 0 && text.find("169.254.") != 0);
  }
  static const auto policy = *proxy::ResourcePolicy::create({});
  if (policy->check("GET", text) == proxy::ResourcePolicy::Verdict::kAllowed) {
    CEEMS_CHECK(proxy::target_for({}, text, {}) == text);
  }
  return 0;
}
