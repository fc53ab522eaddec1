#include "gate/owners.h"

#include <array>
#include <atomic>
#include <list>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/mutex.h"
#include "store/fields.h"
#include "store/reader.h"

namespace ceems::gate {
namespace {

class DatabaseOwners final : public Owners {
 public:
  explicit DatabaseOwners(store::Reader& reader) : reader_(&reader) {}

  Result<bool> is_admin(const std::string& user) override { return reader_->is_admin(user); }

  Result<bool> may_see(const std::string& user,
                       const std::string& cluster,
                       const UnitSet& units) override {
    if (user.empty() || units.empty()) {
      return false;
    }
    CEEMS_TRY(count, reader_->count_member_units(scope_of(user), {cluster},
                                                 std::vector(units.begin(), units.end())));
    return count == units.size();
  }

  Result<UnitSet> units_of(const std::string& user,
                           const std::string& cluster,
                           const promql::TimeSpan& alive,
                           std::size_t limit) override {
    const auto uuid = store::find_field(store::unit_fields(), "uuid");
    const auto started = store::find_field(store::unit_fields(), "started_at_ts");
    if (!uuid || !started) {
      return fail(ErrorCode::kInternal, "units have no field 'uuid' or 'started_at_ts'");
    }
    store::UnitQuery query;
    query.owners = scope_of(user);
    query.clusters = {cluster};
    if (alive.from_ms > 0) {
      query.ended = {.from_ms = alive.from_ms, .to_ms = kFarTime};
      query.running = true;
    }
    const std::array fields = {*uuid, *started};
    CEEMS_TRY(rows, reader_->units(query, fields));
    UnitSet units;
    while (units.size() <= limit) {
      CEEMS_TRY(more, rows->next());
      if (!more) {
        break;
      }
      if (rows->integer(1) <= alive.to_ms) {
        units.emplace(rows->text(0));
      }
    }
    return units;
  }

  Result<SharedIds> shared_ids(const std::string& user,
                               const std::string& cluster,
                               const UnitSet& units) override {
    CEEMS_TRY(lives, reader_->unit_lives(scope_of(user), cluster,
                                         std::vector(units.begin(), units.end())));
    return shared_ids_among(std::move(lives));
  }

 private:
  /// The user, and the projects that the user leads, as in the API server
  /// (access::own_projects). A database of CEEMS 0.10.2 has no table of leads; then there are none.
  store::Scope scope_of(const std::string& user) {
    store::Scope scope{.names = {user}};
    auto led = reader_->led_projects(user);
    if (led) {
      scope.led_projects = std::move(*led);
    }
    if (knows_leads_.exchange(led.has_value()) && !led) {
      log::warn("cannot read the leads of projects; treating all projects as having none",
                {{"err", led.error().message}});
    }
    return scope;
  }

  std::atomic<bool> knows_leads_ = true;
  store::Reader* reader_;
};

/// Keys contain what clients send. Longer ones are not worth their memory.
constexpr std::size_t kMaxKeyBytes = 1024;

/// A map whose entries expire. When it is full, the oldest entry is dropped.
template <typename Value>
class AgingMap {
 public:
  AgingMap(const Clock& clock, const OwnerCacheOptions& options)
      : clock_(&clock), options_(options) {}

  std::optional<Value> find(const std::string& key) {
    const MutexLock lock(mutex_);
    const auto found = entries_.find(key);
    if (found == entries_.end()) {
      return std::nullopt;
    }
    if (clock_->steady_now() - found->second->stored >= options_.age) {
      drop(found->second);
      return std::nullopt;
    }
    return found->second->value;
  }

  /// `weight` counts against the number of entries.
  void store(const std::string& key, Value value, std::size_t weight = 1) {
    if (options_.age.count() == 0 || options_.entries == 0 || key.size() > kMaxKeyBytes) {
      return;
    }
    const MutexLock lock(mutex_);
    if (const auto found = entries_.find(key); found != entries_.end()) {
      drop(found->second);
    }
    order_.push_back({key, std::move(value), weight, clock_->steady_now()});
    entries_.emplace(key, std::prev(order_.end()));
    weight_ += weight;
    while (weight_ > options_.entries) {
      drop(order_.begin());
    }
  }

 private:
  struct Entry {
    std::string key;
    Value value;
    std::size_t weight;
    Clock::SteadyTime stored;
  };

  void drop(typename std::list<Entry>::iterator entry) CEEMS_REQUIRES(mutex_) {
    weight_ -= entry->weight;
    entries_.erase(entry->key);
    order_.erase(entry);
  }

  const Clock* clock_;
  OwnerCacheOptions options_;
  Mutex mutex_;
  std::size_t weight_ CEEMS_GUARDED_BY(mutex_) = 0;
  std::list<Entry> order_ CEEMS_GUARDED_BY(mutex_);
  std::unordered_map<std::string, typename std::list<Entry>::iterator> entries_
      CEEMS_GUARDED_BY(mutex_);
};

/// A key of several parts with their lengths, so that different parts never give the same key.
std::string key_of(std::initializer_list<std::string_view> parts) {
  std::string key;
  for (const std::string_view part : parts) {
    key += std::to_string(part.size());
    key += ':';
    key += part;
  }
  return key;
}

class CachedOwners final : public Owners {
 public:
  CachedOwners(Owners& owners, const Clock& clock, const OwnerCacheOptions& options)
      : owners_(&owners),
        admins_(clock, options),
        units_(clock, options),
        shared_(clock, options),
        own_(clock, {.age = options.age, .entries = options.own_units}) {}

  Result<bool> is_admin(const std::string& user) override {
    if (auto known = memory_.is_admin(user)) {
      return known;
    }
    auto answer = noted(owners_->is_admin(user));
    if (answer) {
      admins_.store(user, *answer);
    }
    return answer;
  }

  /// A negative answer for several units says nothing about each of them, so it is not cached.
  Result<bool> may_see(const std::string& user,
                       const std::string& cluster,
                       const UnitSet& units) override {
    UnitSet unknown;
    if (const auto known = known_units(user, cluster, units, unknown)) {
      return *known;
    }
    auto answer = noted(owners_->may_see(user, cluster, unknown));
    if (answer && (*answer || unknown.size() == 1)) {
      for (const std::string& unit : unknown) {
        units_.store(key_of({user, cluster, unit}), *answer);
      }
    }
    return answer;
  }

  Result<UnitSet> units_of(const std::string& user,
                           const std::string& cluster,
                           const promql::TimeSpan& alive,
                           std::size_t limit) override {
    const std::string key = key_of({user, cluster, std::to_string(alive.from_ms),
                                    std::to_string(alive.to_ms), std::to_string(limit)});
    if (auto known = own_.find(key)) {
      return std::move(*known);
    }
    auto answer = noted(owners_->units_of(user, cluster, alive, limit));
    if (answer) {
      own_.store(key, *answer, answer->size() + 1);
    }
    return answer;
  }

  Result<SharedIds> shared_ids(const std::string& user,
                               const std::string& cluster,
                               const UnitSet& units) override {
    SharedIds ids;
    const UnitSet unknown = known_shared_ids(user, cluster, units, ids);
    if (unknown.empty()) {
      return ids;
    }
    CEEMS_TRY(answer, noted(owners_->shared_ids(user, cluster, unknown)));
    for (const std::string& unit : unknown) {
      const auto found = answer.find(unit);
      shared_.store(
          key_of({user, cluster, unit}),
          found == answer.end() ? nullptr : std::make_shared<const SharedId>(found->second));
    }
    ids.merge(answer);
    return ids;
  }

  Owners* cached_only() override { return &memory_; }

 private:
  /// Answers from the cache alone.
  class Memory final : public Owners {
   public:
    explicit Memory(CachedOwners& all) : all_(&all) {}

    Result<bool> is_admin(const std::string& user) override {
      if (const auto known = all_->admins_.find(user)) {
        return *known;
      }
      return unknown();
    }
    Result<bool> may_see(const std::string& user,
                         const std::string& cluster,
                         const UnitSet& units) override {
      UnitSet others;
      if (const auto known = all_->known_units(user, cluster, units, others)) {
        return *known;
      }
      return unknown();
    }
    /// Always an error: adding all units of a user to a query takes too long for this path.
    Result<UnitSet> units_of(const std::string& /*user*/,
                             const std::string& /*cluster*/,
                             const promql::TimeSpan& /*alive*/,
                             std::size_t /*limit*/) override {
      return unknown();
    }

    Result<SharedIds> shared_ids(const std::string& user,
                                 const std::string& cluster,
                                 const UnitSet& units) override {
      SharedIds ids;
      if (!all_->known_shared_ids(user, cluster, units, ids).empty()) {
        return unknown();
      }
      return ids;
    }

   private:
    static std::unexpected<Error> unknown() {
      return fail(ErrorCode::kUnavailable, "not in the cache");
    }
    CachedOwners* all_;
  };

  /// Whether the user may see all units; nothing if that is not known of some, which are then added
  /// to `unknown`.
  std::optional<bool> known_units(const std::string& user,
                                  const std::string& cluster,
                                  const UnitSet& units,
                                  UnitSet& unknown) {
    for (const std::string& unit : units) {
      const auto known = units_.find(key_of({user, cluster, unit}));
      if (known && !*known) {
        return false;
      }
      if (!known) {
        unknown.insert(unit);
      }
    }
    return unknown.empty() ? std::optional(!units.empty()) : std::nullopt;
  }

  /// Adds the known ones to `ids` and returns the units about which nothing is known.
  UnitSet known_shared_ids(const std::string& user,
                           const std::string& cluster,
                           const UnitSet& units,
                           SharedIds& ids) {
    UnitSet unknown;
    for (const std::string& unit : units) {
      const auto known = shared_.find(key_of({user, cluster, unit}));
      if (!known) {
        unknown.insert(unit);
      } else if (*known != nullptr) {
        ids.emplace(unit, **known);
      }
    }
    return unknown;
  }

  template <typename Answer>
  Answer noted(Answer answer) {
    const bool away = !answer.has_value();
    if (away_.exchange(away) == away) {
      return answer;
    }
    if (away) {
      log::error(
          "cannot look up admins and owners of units; denying all requests that are not cached",
          {{"err", answer.error().message}});
    } else {
      log::info("admins and owners of units can be looked up again");
    }
    return answer;
  }

  Owners* owners_;
  Memory memory_{*this};
  std::atomic<bool> away_ = false;
  AgingMap<bool> admins_;
  AgingMap<bool> units_;
  AgingMap<std::shared_ptr<const SharedId>> shared_;  ///< null: units of others never had the ID
  AgingMap<UnitSet> own_;
};

}  // namespace

std::unique_ptr<Owners> database_owners(store::Reader& reader) {
  return std::make_unique<DatabaseOwners>(reader);
}

std::unique_ptr<Owners> cached_owners(Owners& owners,
                                      const Clock& clock,
                                      OwnerCacheOptions options) {
  return std::make_unique<CachedOwners>(owners, clock, options);
}

}  // namespace ceems::gate
