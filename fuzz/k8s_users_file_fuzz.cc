// The file that lists the users of namespaces (extra_config.ns_users_list_file).
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/utf8.h"
#include "ingest/manager/k8s/people.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the fuzzer's bytes as text
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto document = ceems::config::parse_yaml(text, "users.yaml");
  if (!document) {
    return 0;
  }
  const auto members = ceems::ingest::users_of_file(*document);
  if (!members) {
    CEEMS_CHECK(!members.error().message.empty());
    return 0;
  }
  for (const auto& [project, user] : *members) {
    CEEMS_CHECK(!project.empty() && !user.empty() && ceems::is_utf8(user));
  }
  const auto people = ceems::ingest::users_and_projects(*members);
  CEEMS_CHECK(people.users.empty() == members->empty());
  return 0;
}
