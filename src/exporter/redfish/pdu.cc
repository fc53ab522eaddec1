#include "exporter/redfish/pdu.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/log.h"
#include "base/strings.h"

namespace ceems::exporter::redfish {
namespace {

constexpr std::string_view kServiceRoot = "/redfish/v1/";

/// Unit and link of an outlet.
using UnitOutlet = std::pair<std::string, std::string>;

}  // namespace

PduReader::PduReader(std::unique_ptr<Session> session,
                     std::map<std::string, std::string> outlets,
                     const Clock& clock)
    : session_(std::move(session)), outlets_(std::move(outlets)), clock_(clock) {}

Result<std::vector<NodeOutlets>> PduReader::read(const std::stop_token& stop) {
  const std::stop_callback on_stop(stop, [this] { session_->cancel(); });
  const auto now = clock_.steady_now();
  if (refused_ && now < next_connect_) {
    return fail(*refused_);
  }
  refused_.reset();
  if (!paths_.empty() && now < next_connect_) {
    auto readings = read_all();
    // A token that has expired is the usual reason.
    if (readings || readings.error().code != ErrorCode::kPermissionDenied) {
      return readings;
    }
  }
  next_connect_ = now + kAgain;
  paths_.clear();
  if (auto done = connect(); !done) {
    paths_.clear();
    Error error = std::move(done).error().with_context("connecting");
    if (error.code == ErrorCode::kPermissionDenied) {
      refused_ = error;
    }
    return fail(std::move(error));
  }
  return read_all();
}

Result<> PduReader::connect() {
  CEEMS_TRY(text, session_->get(kServiceRoot));
  CEEMS_TRY_IN(std::string(kServiceRoot), root, parse_service_root(text));
  if (session_->wants_token()) {
    if (root.sessions.empty()) {
      return fail(ErrorCode::kParse, "no link to the sessions, so login is not possible");
    }
    CEEMS_TRY(session_->log_in(root.sessions));
  }
  CEEMS_TRY(equipment, parse_link(text, "PowerEquipment"));
  if (equipment.empty()) {
    return fail(ErrorCode::kNoData, "the service has no PowerEquipment");
  }
  CEEMS_TRY(found, list_outlets(equipment));
  const bool several = std::ranges::any_of(
      found, [&](const UnitOutlet& outlet) { return outlet.first != found.front().first; });
  find(found, several);
  if (std::ranges::all_of(paths_, [](const Path& path) { return path.link.empty(); })) {
    return fail(ErrorCode::kNoData, "none of the {} outlets of the service is configured{}",
                found.size(), several ? "; there are several units, so write UNIT/OUTLET" : "");
  }
  return {};
}

/// The outlets of all units.
Result<std::vector<UnitOutlet>> PduReader::list_outlets(const std::string& root) {
  CEEMS_TRY(text, session_->get(root));
  std::vector<UnitOutlet> outlets;
  std::size_t count = 0;
  for (const char* kind : {"RackPDUs", "FloorPDUs"}) {
    CEEMS_TRY(list, parse_link(text, kind));
    if (list.empty()) {
      continue;
    }
    CEEMS_TRY(units_text, session_->get(list));
    CEEMS_TRY(units, parse_collection(units_text));
    for (const std::string& unit : units.members) {
      if (++count > kMaxUnits) {
        break;
      }
      CEEMS_TRY(unit_text, session_->get(unit));
      CEEMS_TRY(outlets_link, parse_link(unit_text, "Outlets"));
      std::set<std::string> pages;  // they may form a cycle
      for (std::string page = outlets_link; !page.empty() && pages.insert(page).second;) {
        CEEMS_TRY(page_text, session_->get(page));
        CEEMS_TRY(members, parse_collection(page_text));
        for (std::string& outlet : members.members) {
          outlets.emplace_back(last_part(unit), std::move(outlet));
        }
        page = std::move(members.next);
      }
    }
  }
  return outlets;
}

void PduReader::find(const std::vector<UnitOutlet>& outlets, bool several) {
  std::vector<std::string> missing;
  for (const auto& [name, node] : outlets_) {
    const auto found = std::ranges::find_if(outlets, [&](const UnitOutlet& outlet) {
      const std::string_view id = last_part(outlet.second);
      return name == fmt::format("{}/{}", outlet.first, id) || (!several && name == id);
    });
    if (found == outlets.end()) {
      missing.push_back(printable(name));
    }
    paths_.push_back({.node = node, .link = found == outlets.end() ? "" : found->second});
  }
  std::ranges::stable_sort(paths_, {}, &Path::node);
  if (!missing.empty()) {
    log::warn("outlets of the configuration do not exist",
              {{"collector", "pdu"}, {"outlets", fmt::format("{}", fmt::join(missing, ","))}});
  }
}

Result<std::vector<NodeOutlets>> PduReader::read_all() {
  std::vector<NodeOutlets> nodes;
  std::optional<Error> first;
  for (const Path& path : paths_) {
    if (nodes.empty() || nodes.back().node != path.node) {
      nodes.push_back({.node = path.node, .watts = 0, .joules = 0});
    }
    Outlet outlet;
    if (!path.link.empty()) {
      const auto text = session_->get(path.link);
      const auto parsed = text ? parse_outlet(*text) : Result<Outlet>(fail(text.error()));
      if (parsed) {
        outlet = *parsed;
      } else {
        first = first ? first : parsed.error();
      }
      if (!text && text.error().code != ErrorCode::kNotFound) {
        return fail(text.error());  // the next outlet would take as long or be refused as well
      }
    }
    NodeOutlets& node = nodes.back();
    const auto add = [](std::optional<double>& sum, const std::optional<double>& part) {
      sum = sum && part ? std::optional(*sum + *part) : std::nullopt;
    };
    add(node.watts, outlet.watts);
    add(node.joules, outlet.joules);
  }
  std::erase_if(nodes, [](const NodeOutlets& node) { return !node.watts && !node.joules; });
  if (nodes.empty()) {
    return first ? fail(*std::move(first)) : fail(ErrorCode::kNoData, "no outlet has a value");
  }
  return nodes;
}

}  // namespace ceems::exporter::redfish
