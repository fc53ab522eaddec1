#include "api/report/flavors.h"

#include <algorithm>
#include <array>
#include <tuple>

#include <boost/json.hpp>

#include "api/report/json_object.h"
#include "base/strings.h"

namespace ceems::api {
namespace {

namespace json = boost::json;

constexpr double kFlavorMib = 1024.0 * 1024;

std::string_view text_at(const json::object& object, std::string_view key) {
  const auto* const value = object.if_contains(json::string_view(key.data(), key.size()));
  return value != nullptr && value->is_string()
             ? std::string_view(value->get_string().data(), value->get_string().size())
             : std::string_view();
}

bool has(const StoredUnit& unit, std::string_view key, std::int64_t number) {
  const auto allocated = unit.allocated(key);
  return allocated && *allocated == static_cast<double>(number);
}

/// Nova takes huge pages from an image only if the flavor names them, too.
bool uses_huge_pages(const model::Flavor& flavor) {
  const json::object specs = object_of(flavor.extra_specs);
  const std::string_view size = text_at(specs, "hw:mem_page_size");
  return !size.empty() && size != "small";
}

/// Whether a client of Nova finds the flavor by its name: it looks for that among the ids first.
bool is_found_by_name(const model::Flavor& flavor, std::span<const model::Flavor> flavors) {
  return std::ranges::none_of(flavors, [&](const model::Flavor& other) {
    return other.region == flavor.region && &other != &flavor && other.id == flavor.name;
  });
}

bool may_replace(const model::Flavor& now, const model::Flavor& other) {
  return other.offered && other.region == now.region && other.vcpus > 0 && other.ram_mib > 0 &&
         other.vcpus <= now.vcpus && other.ram_mib <= now.ram_mib &&
         (other.vcpus < now.vcpus || other.ram_mib < now.ram_mib) && other.disk_gb >= now.disk_gb &&
         other.ephemeral_gb >= now.ephemeral_gb && other.swap_mb >= now.swap_mb &&
         other.extra_specs == now.extra_specs;
}

std::optional<double> number_of(const advice::Facts& facts, std::string_view name) {
  const advice::Value value = facts.value_of(name);
  const double* number = std::get_if<double>(&value);
  return number != nullptr ? std::optional(*number) : std::nullopt;
}

/// The most that the server and earlier runs of its family used.
std::optional<FlavorNeeds> needs_of(const Evidence& evidence, const advice::Facts& facts) {
  const auto cpus = number_of(facts, "cpu.used_max");
  const auto memory = number_of(facts, "mem.peak_node_max");
  if (!cpus || !memory || *memory <= 0) {
    return std::nullopt;
  }
  FlavorNeeds needs{.vcpus = *cpus,
                    .bytes = std::max(*memory, number_of(facts, "family.mem_max").value_or(0))};
  for (const store::FamilyRun& run : evidence.earlier) {
    needs.vcpus = std::max(needs.vcpus, run.numbers.cpu_used_max.value_or(0));
  }
  return needs;
}

}  // namespace

const model::Flavor* flavor_of(const StoredUnit& unit, std::span<const model::Flavor> flavors) {
  const json::object allocation = object_of(unit.unit.allocation);
  const auto* const specs = allocation.if_contains("extra_specs");
  const std::string region = unit.tag("region");
  const auto found = std::ranges::find_if(flavors, [&](const model::Flavor& flavor) {
    return flavor.region == region && !flavor.name.empty() &&
           flavor.name == text_at(allocation, "name") && has(unit, "vcpus", flavor.vcpus) &&
           has(unit, "mem", flavor.ram_mib) && has(unit, "disk", flavor.disk_gb) &&
           has(unit, "swap", flavor.swap_mb) && specs != nullptr && specs->is_object() &&
           specs->get_object() == object_of(flavor.extra_specs);
  });
  return found == flavors.end() ? nullptr : &*found;
}

const model::Flavor* smaller_flavor(const model::Flavor& now,
                                    const FlavorNeeds& needs,
                                    std::span<const model::Flavor> flavors) {
  if (now.vcpus <= 0 || now.ram_mib <= 0 || uses_huge_pages(now)) {
    return nullptr;
  }
  const auto size = [&now](const model::Flavor& flavor) {
    const double share = static_cast<double>(flavor.vcpus) / static_cast<double>(now.vcpus) +
                         static_cast<double>(flavor.ram_mib) / static_cast<double>(now.ram_mib);
    return std::tuple(share, flavor.disk_gb, flavor.ephemeral_gb, flavor.swap_mb,
                      std::string_view(flavor.name));
  };
  const model::Flavor* best = nullptr;
  for (const model::Flavor& flavor : flavors) {
    if (may_replace(now, flavor) && static_cast<double>(flavor.vcpus) >= needs.vcpus &&
        static_cast<double>(flavor.ram_mib) * kFlavorMib >= needs.bytes &&
        shell_word(flavor.name) && is_found_by_name(flavor, flavors) &&
        (best == nullptr || size(flavor) < size(*best))) {
      best = &flavor;
    }
  }
  return best;
}

std::optional<std::string> shell_word(std::string_view text) {
  constexpr std::size_t kMaxWordBytes = 255;
  constexpr std::string_view kPlain = "_-./:@%+,";
  if (text.empty() || text.size() > kMaxWordBytes || text.front() == '-' ||
      !std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; })) {
    return std::nullopt;
  }
  if (has_only_words(text, kPlain)) {
    return std::string(text);
  }
  return shell_quoted(text);
}

void add_flavor(const Evidence& evidence,
                std::span<const model::Flavor> flavors,
                double margin,
                advice::Facts& facts) {
  const model::Unit& unit = evidence.unit.unit;
  const bool exists = unit.ended_at_ts <= 0;
  const auto server = shell_word(unit.uuid);
  if (unit.resource_manager != "openstack" || !server ||
      (!exists && unit.state != "DELETED" && unit.state != "SOFT_DELETED")) {
    return;
  }
  const model::Flavor* const now = flavor_of(evidence.unit, flavors);
  auto needs = needs_of(evidence, facts);
  if (now == nullptr || !needs || !(margin >= 1)) {
    return;
  }
  needs->vcpus *= margin;
  needs->bytes *= margin;
  const model::Flavor* const smaller = smaller_flavor(*now, *needs, flavors);
  if (smaller == nullptr) {
    return;
  }
  facts.set("flavor.name", shell_word(smaller->name).value_or(""));
  facts.set("flavor.vcpus", static_cast<double>(smaller->vcpus));
  facts.set("flavor.mem", static_cast<double>(smaller->ram_mib) * kFlavorMib);
  if (const auto name = shell_word(now->name)) {
    facts.set("flavor.now", *name);
  }
  if (exists) {
    facts.set("flavor.server", *server);
  }
}

}  // namespace ceems::api
