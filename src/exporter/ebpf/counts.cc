#include "exporter/ebpf/counts.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/strings.h"

namespace ceems::exporter::ebpf {
namespace {

constexpr std::size_t kMaxLabel = 64;
constexpr std::size_t kMaxPath = 512;

std::string_view until_zero(std::string_view text) {
  return text.substr(0, text.find('\0'));
}

constexpr std::size_t kMaxChains = 65536;

/// What `now` has more than `before`, counter by counter.
template <class Value>
Value growth(const Value& before, const Value& now) {
  const auto old = std::bit_cast<Counters<Value>>(before);
  auto grown = std::bit_cast<Counters<Value>>(now);
  for (std::size_t i = 0; i < grown.size(); ++i) {
    grown[i] -= std::min(grown[i], old[i]);
  }
  return std::bit_cast<Value>(grown);
}

/// The larger of each pair of counters.
template <class Value>
Value larger(const Value& a, const Value& b) {
  auto most = std::bit_cast<Counters<Value>>(a);
  const auto other = std::bit_cast<Counters<Value>>(b);
  for (std::size_t i = 0; i < most.size(); ++i) {
    most[i] = std::max(most[i], other[i]);
  }
  return std::bit_cast<Value>(most);
}

TrafficKind kind_of(const ebpf_traffic_key& key) {
  return {.protocol = key.protocol, .family = key.family, .network_class = key.network_class};
}

ebpf_latency_key mount_of(std::uint64_t mount, std::uint64_t root) {
  return {.mount = mount, .root = root, .operation = 0, .unused = 0};
}

/// The cgroup and those above it, without the root.
std::vector<std::uint64_t> chain_of(std::uint64_t id, const std::optional<ebpf_cgroup>& cgroup) {
  std::vector<std::uint64_t> ids{id};
  if (cgroup) {
    std::ranges::copy_if(cgroup->ancestors, std::back_inserter(ids),
                         [](std::uint64_t above) { return above > 1; });
  }
  return ids;
}

}  // namespace

MountLabel mount_label(const ebpf_place& place, bool full_path) {
  const std::string_view all(std::begin(place.text), std::size(place.text));
  std::string_view rest = all.substr(0, std::min<std::size_t>(place.length, all.size()));
  std::string path;
  while (!rest.empty()) {
    const bool last_of_path = rest.front() == 1;
    rest.remove_prefix(1);
    const std::string_view name = until_zero(rest);
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    if (last_of_path || full_path) {
      path.insert(0, "/" + std::string(name));  // names come from the mount up to the root
    }
  }
  if (!full_path && path.size() > kMaxLabel) {
    path.resize(kMaxLabel);
  }
  return {.text = path.empty() ? "/" : printable(path, kMaxPath),
          .type = printable(until_zero({std::begin(place.type), std::size(place.type)}),
                            sizeof(place.type))};
}

template <class Key>
bool Counts::LessBytes::operator()(const Key& a, const Key& b) const {
  return std::memcmp(&a, &b, sizeof(Key)) < 0;
}

Counts::Counts(std::unique_ptr<Tables> tables, bool full_paths, const Clock& clock)
    : full_paths_(full_paths), clock_(clock), tables_(std::move(tables)) {}

Result<CountsPage> Counts::page(const UnitSnapshot& snapshot) {
  const MutexLock lock(mutex_);
  note_units(snapshot);
  const auto now = clock_.steady_now();
  const bool shared = read_ && now - *read_ < kSharedAge && !served_.contains(snapshot.manager);
  if (!shared) {
    CEEMS_TRY(readings, tables_->read());
    readings_ = std::move(readings);
    read_ = now;
    served_.clear();
  }
  served_.insert(snapshot.manager);
  assign();
  CountsPage page{.latencies = latencies_, .lost = readings_.lost, .skipped = readings_.skipped};
  for (const auto& [uuid, unit] : managers_[snapshot.manager].units) {
    page.units.emplace(uuid, unit.counts);
  }
  return page;
}

void Counts::note_units(const UnitSnapshot& snapshot) {
  Manager& manager = managers_[snapshot.manager];
  manager.cgroups.clear();
  std::set<std::string_view> uuids;
  for (const exporter::Unit& unit : snapshot.units) {
    uuids.insert(unit.uuid);
    manager.units.try_emplace(unit.uuid);
    if (unit.cgroup_id != 0) {
      manager.cgroups.insert_or_assign(unit.cgroup_id, unit.uuid);
    }
  }
  std::erase_if(manager.units, [&](const auto& item) { return !uuids.contains(item.first); });
  owners_.clear();
}

const Counts::Owners& Counts::owners_of(std::uint64_t cgroup) {
  const auto [entry, is_new] = owners_.try_emplace(cgroup);
  if (!is_new) {
    return entry->second;
  }
  if (above_.size() > kMaxChains) {
    above_.clear();
  }
  auto chain = above_.find(cgroup);
  if (chain == above_.end()) {
    chain = above_.emplace(cgroup, chain_of(cgroup, tables_->cgroup(cgroup))).first;
  }
  for (auto& [name, manager] : managers_) {
    // The nearest cgroup that is a unit, as in the walk of the tree.
    for (const std::uint64_t id : chain->second) {
      const auto found = manager.cgroups.find(id);
      if (found != manager.cgroups.end()) {
        entry->second.push_back(&manager.units.at(found->second));
        break;
      }
    }
  }
  return entry->second;
}

/// Calls use(growth) if the row has owners and has grown, or is new for them.
template <class Value, class Use>
void Counts::assign_row(Row<Value>& row, const Value& now, bool claimed, const Use& use) {
  const bool is_new = row.changed == Clock::SteadyTime{};
  if (is_new || std::memcmp(&row.last, &now, sizeof(now)) != 0) {
    row.last = larger(row.last, now);
    row.changed = read_.value_or(Clock::SteadyTime{});
  }
  row.claimed = claimed;
  if (claimed) {
    use(growth(row.assigned, row.last));
    row.assigned = row.last;
  }
}

void Counts::assign() {
  owners_.clear();
  assign_files();
  assign_names();
  assign_traffic();
  assign_latencies();
  forget_idle(files_, [this](const ebpf_file_key& key) CEEMS_REQUIRES(mutex_) {
    if (!tables_->forget_file(key)) {
      return false;
    }
    file_times_.erase(key);
    return true;
  });
  forget_idle(names_, [this](std::uint64_t id) CEEMS_REQUIRES(mutex_) {
    tables_->forget_names(id);
    return true;
  });
  forget_idle(traffic_, [this](const ebpf_traffic_key& key) CEEMS_REQUIRES(mutex_) {
    tables_->forget_traffic(key);
    return true;
  });
  forget_idle(latency_rows_, [this](const ebpf_latency_key& key) CEEMS_REQUIRES(mutex_) {
    tables_->forget_latency(key);
    return true;
  });
  forget_cgroups();
}

/// Deletes cgroups without a row now and the last time. Their ancestors stay known here, in case a
/// row is being made at this moment.
void Counts::forget_cgroups() {
  if (looked_through_ && *read_ - *looked_through_ < kKeepUnclaimed) {
    return;
  }
  looked_through_ = *read_;
  std::set<std::uint64_t> used;
  for (const auto& [key, row] : files_) {
    used.insert(key.cgroup);
  }
  for (const auto& [id, row] : names_) {
    used.insert(id);
  }
  for (const auto& [key, row] : traffic_) {
    used.insert(key.cgroup);
  }
  for (const ebpf_open_connection& connection : readings_.open) {
    used.insert(connection.key.cgroup);
  }
  std::set<std::uint64_t> unused;
  for (const auto& [id, cgroup] : tables_->cgroups()) {
    if (used.contains(id)) {
      continue;
    }
    if (unused_.contains(id)) {
      above_.try_emplace(id, chain_of(id, cgroup));
      tables_->forget_cgroup(id);
    } else {
      unused.insert(id);
    }
  }
  unused_ = std::move(unused);
}

const MountLabel& Counts::label_of(const ebpf_file_key& key) {
  FileRow& row = files_[key];
  if (!row.label) {
    const auto place = tables_->place(key);
    row.label = place ? mount_label(*place, full_paths_)
                      : MountLabel{.text = "[unknown]", .type = "unknown"};
    mounts_.insert_or_assign(mount_of(key.mount, key.root), *row.label);
  }
  return *row.label;
}

void Counts::assign_files() {
  for (const auto& [key, now] : readings_.files) {
    const Owners& owners = owners_of(key.cgroup);
    const MountLabel& label = label_of(key);
    assign_row(files_[key], now, !owners.empty(), [&](const ebpf_file_value& grown) {
      for (Unit* const unit : owners) {
        ebpf_file_value& sum = unit->counts.files[label.text].io;
        sum = add(sum, grown);
      }
    });
  }
  for (const auto& [key, now] : readings_.file_times) {
    const Owners& owners = owners_of(key.cgroup);
    const MountLabel& label = label_of(key);
    assign_row(file_times_[key], now, !owners.empty(), [&](const ebpf_file_time& grown) {
      for (Unit* const unit : owners) {
        ebpf_file_time& sum = unit->counts.files[label.text].time;
        sum = add(sum, grown);
      }
    });
  }
}

void Counts::assign_names() {
  for (const auto& [id, now] : readings_.names) {
    const Owners& owners = owners_of(id);
    assign_row(names_[id], now, !owners.empty(), [&](const ebpf_name_value& grown) {
      for (Unit* const unit : owners) {
        unit->counts.names = add(unit->counts.names.value_or(ebpf_name_value{}), grown);
      }
    });
  }
}

void Counts::assign_traffic() {
  for (auto& [name, manager] : managers_) {
    for (auto& [uuid, unit] : manager.units) {
      unit.open.clear();
    }
  }
  for (const auto& [key, now] : readings_.traffic) {
    const Owners& owners = owners_of(key.cgroup);
    assign_row(traffic_[key], now, !owners.empty(), [&](const ebpf_traffic_value& grown) {
      for (Unit* const unit : owners) {
        ebpf_traffic_value& sum = unit->settled[kind_of(key)];
        sum = add(sum, grown);
      }
    });
  }
  for (const ebpf_open_connection& connection : readings_.open) {
    for (Unit* const unit : owners_of(connection.key.cgroup)) {
      ebpf_traffic_value& sum = unit->open[kind_of(connection.key)];
      sum = add(sum, connection.value);
    }
  }
  // A connection that ends while the tables are read is in neither sum until the next reading.
  const auto show = [](Unit& unit, const TrafficKind& kind) {
    ebpf_traffic_value& shown = unit.counts.traffic[kind];
    shown = larger(shown, add(unit.settled[kind], unit.open[kind]));
  };
  for (auto& [name, manager] : managers_) {
    for (auto& [uuid, unit] : manager.units) {
      for (const auto& [kind, value] : unit.settled) {
        show(unit, kind);
      }
      for (const auto& [kind, value] : unit.open) {
        show(unit, kind);
      }
    }
  }
}

void Counts::assign_latencies() {
  for (const auto& [key, now] : readings_.latencies) {
    const auto mount = mounts_.find(mount_of(key.mount, key.root));
    assign_row(latency_rows_[key], now, mount != mounts_.end(),
               [&](const ebpf_latency_value& grown) CEEMS_REQUIRES(mutex_) {
                 ebpf_latency_value& sum =
                     // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): only if it was found
                     latencies_[{.mount = mount->second, .operation = key.operation}];
                 sum = add(sum, grown);
               });
  }
}

template <class Key, class RowOfKey, class Forget>
void Counts::forget_idle(Known<Key, RowOfKey>& rows, const Forget& forget) {
  std::erase_if(rows, [&](const auto& item) CEEMS_REQUIRES(mutex_) {
    const auto& row = item.second;
    const auto keep = row.claimed ? Clock::SteadyTime::duration(kKeepAssigned) : kKeepUnclaimed;
    if (*read_ - row.changed < keep) {
      return false;
    }
    return forget(item.first);
  });
}

}  // namespace ceems::exporter::ebpf
