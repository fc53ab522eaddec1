#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/yaml.h"

namespace ceems::ingest::openstack {

/// The resources of a server. Nova embeds the whole flavor in a server since microversion 2.47;
/// with older ones a server has only the flavor's id.
struct Flavor {
  std::string id = {};
  bool detailed = false;  ///< whether the remaining fields are known
  std::string name = {};
  std::int64_t vcpus = 0;
  std::int64_t ram_mib = 0;
  std::int64_t disk_gb = 0;
  std::int64_t ephemeral_gb = 0;  ///< of a list of flavors
  std::int64_t swap_mb = 0;
  std::int64_t vgpus = 0;                               ///< extra spec resources:VGPU
  std::map<std::string, std::string> extra_specs = {};  ///< at most 128
  bool has_extra_specs =
      false;             ///< whether Nova sent all of them; since microversion 2.61 in lists
  bool offered = false;  ///< said to be public and not disabled, in lists only

  bool operator==(const Flavor&) const = default;
};

/// A server as Nova lists it. Texts may be set by users; they are valid UTF-8 of bounded length.
/// Times are epoch milliseconds.
struct Server {
  std::string id = {}, name = {}, status = {}, project_id = {}, user_id = {};
  std::string reservation_id = {}, availability_zone = {};
  std::string region = {};  ///< set by the caller; empty if there is only one
  std::map<std::string, std::string> metadata = {};
  std::vector<std::string> tags = {};
  std::int64_t power_state = -1;
  std::optional<std::int64_t> created_ms = {}, updated_ms = {}, launched_ms = {},
                              terminated_ms = {};
  Flavor flavor = {};
};

/// One page of a list. `next_marker` is the `marker` of the link to the next page, empty on the
/// last one.
struct ServerPage {
  std::vector<Server> servers;
  std::size_t malformed = 0;  ///< elements left out
  std::string first_problem;
  std::string next_marker;
};
/// Parses the answer of GET /servers/detail (https://docs.openstack.org/api-ref/compute/). kParse
/// for anything but JSON with a list `servers`. Elements without id or status are left out.
Result<ServerPage> parse_servers(std::string_view text);

struct FlavorPage {
  std::vector<Flavor> flavors;
  std::string next_marker;
};
/// Parses the answer of GET /flavors/detail.
Result<FlavorPage> parse_flavors(std::string_view text);

/// A user or a project of Keystone.
struct Named {
  std::string id = {}, name = {}, domain_id = {};
  bool enabled = true;
};
struct NamedPage {
  std::vector<Named> items;
  std::string next_marker;
};
/// Parses the answer of GET /v3/users or /v3/users/ID/projects, whose list is called `key`
/// (https://docs.openstack.org/api-ref/identity/v3/). Elements without id or name are left out. A
/// list that Keystone truncated without a link to the rest is kUnavailable, because the users and
/// projects missing from it must not lose access.
Result<NamedPage> parse_named(std::string_view text, std::string_view key);

/// Parses the answer of GET /v3/users/ID or /v3/projects/ID, whose object is called `key`.
Result<Named> parse_one_named(std::string_view text, std::string_view key);

/// Lifetime of a token in seconds, at most a day, from the body of the answer to POST
/// /v3/auth/tokens: `expires_at` minus `issued_at`, or minus `now_ms` (epoch) if the latter is
/// missing. Nothing if `expires_at` is missing.
std::optional<std::int64_t> token_lifetime(std::string_view text, std::int64_t now_ms);

/// `error.message` of an error answer, printable and shortened; empty if there is none.
std::string error_message(std::string_view text);

/// Converts a value of the configuration to JSON. Quoted scalars become strings. Plain ones become
/// numbers or booleans if they are written as in JSON; null stays null; all others become strings.
Result<std::string> to_json(const config::Node& node);

/// Epoch milliseconds of a UTC time such as "2031-04-05T06:07:08", with or without a fraction and
/// "Z"; nothing for anything else.
std::optional<std::int64_t> parse_utc(std::string_view text);

}  // namespace ceems::ingest::openstack
