#include "exporter/energy/state/learned.h"

#include <sys/utsname.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "base/json_reader.h"
#include "base/strings.h"
#include "crypto/digest.h"
#include "exporter/energy/account/account.h"
#include "host/proc.h"
#include "host/read_file.h"

namespace ceems::exporter::energy {
namespace {

constexpr int kVersion = 1;
constexpr int kMaxSocket = 4096;
constexpr int kSkippedDepth = 3;  // of a value that is skipped: all are inside of others

/// Reads a state file. After a failure error() says what is wrong.
class Reader {
 public:
  Reader(std::string_view text, const MachineIdentity& machine)
      : scanner_(text), machine_(machine) {}

  bool read(Learned& learned) {
    const bool done = object([&](std::string_view key) { return member(key, learned); }) &&
                      (scanner_.at_end() || refuse("expected the end of the text")) &&
                      (version_ || refuse("expected a version")) &&
                      (identified_ || refuse("expected the machine"));
    return done;
  }
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  bool refuse(std::string reason) {
    if (error_.empty()) {
      error_ = std::move(reason);
    }
    return false;
  }

  /// Reads an object. `member` reads the value of a key.
  template <typename Member>
  bool object(Member member) {
    if (!scanner_.take('{')) {
      return refuse("expected an object");
    }
    if (scanner_.take('}')) {
      return true;
    }
    std::string key;
    do {
      if (!scanner_.string(key) || !scanner_.take(':')) {
        return refuse("expected a key");
      }
      if (!member(std::string_view(key))) {
        return refuse(fmt::format("invalid value of '{}'", printable(key)));
      }
    } while (scanner_.take(','));
    return scanner_.take('}') || refuse("expected the end of an object");
  }

  template <typename Element>
  bool array(Element element) {
    if (!scanner_.take('[')) {
      return refuse("expected a list");
    }
    if (scanner_.take(']')) {
      return true;
    }
    do {
      if (!element()) {
        return false;
      }
    } while (scanner_.take(','));
    return scanner_.take(']') || refuse("expected the end of a list");
  }

  bool number(double& value) {
    const auto parsed = parse_double(scanner_.number());
    if (!parsed || !std::isfinite(*parsed)) {
      return refuse("expected a finite number");
    }
    value = *parsed;
    return true;
  }

  bool text(std::string& value) { return scanner_.string(value) || refuse("expected a text"); }

  bool skip() {
    std::string ignored;
    return scanner_.value(ignored, kSkippedDepth);
  }

  bool member(std::string_view key, Learned& learned) {
    if (key == "version") {
      double version = 0;
      version_ = number(version);
      return version_ && (version == kVersion ||
                          refuse(fmt::format("of version {}, expected {}", version, kVersion)));
    }
    if (key == "machine") {
      identified_ = true;
      return read_machine();
    }
    if (key == "idle") {
      return array([&] { return read_idle(learned); });
    }
    if (key == "lags") {
      return array([&] { return read_lag(learned); });
    }
    if (key == "numbers") {
      return object([&](std::string_view name) {
        double value = 0;
        if (!number(value)) {
          return false;
        }
        if (learned.numbers.size() < Learned::kMaxEntries) {
          learned.numbers.insert_or_assign(std::string(name), value);
        }
        return true;
      });
    }
    return skip();
  }

  bool read_machine() {
    MachineIdentity other;
    double sockets = -1;
    double cpus = -1;
    const bool done = object([&](std::string_view key) {
      if (key == "id") {
        return text(other.id);
      }
      if (key == "cpu") {
        return text(other.cpu);
      }
      if (key == "sockets") {
        return number(sockets);
      }
      return key == "cpus" ? number(cpus) : skip();
    });
    if (!done) {
      return false;
    }
    if (other.id != machine_.id) {
      return refuse("of another machine");
    }
    if (other.cpu != machine_.cpu) {
      return refuse(fmt::format("of the CPU '{}', this is '{}'", printable(other.cpu),
                                printable(machine_.cpu)));
    }
    if (sockets != static_cast<double>(machine_.sockets) ||
        cpus != static_cast<double>(machine_.cpus)) {
      return refuse(fmt::format("of {} sockets and {} CPUs, this machine has {} and {}", sockets,
                                cpus, machine_.sockets, machine_.cpus));
    }
    return true;
  }

  bool read_idle(Learned& learned) {
    Learned::Idle entry;
    bool has_domain = false;
    const bool done = object([&](std::string_view key) {
      if (key == "domain") {
        has_domain = true;
        return read_domain(entry.domain);
      }
      if (key == "socket") {
        double socket = 0;
        if (!number(socket) || socket < 0 || socket > kMaxSocket || socket != std::floor(socket)) {
          return refuse("expected the number of a socket");
        }
        entry.socket = static_cast<int>(socket);
        return true;
      }
      if (key == "device") {
        return text(entry.device);
      }
      if (key == "meters") {
        return text(entry.meters);
      }
      if (key == "estimate") {
        return read_estimate(entry.estimate.emplace());
      }
      if (key == "core") {
        return read_estimate(entry.core.emplace());
      }
      if (key == "system") {
        return read_estimate(entry.system.emplace());
      }
      if (key == "losses") {
        return read_estimate(entry.losses.emplace());
      }
      if (key == "units") {
        return object([&](std::string_view unit) { return read_unit(unit, entry.units); });
      }
      return key == "bins" ? array([&] { return read_bin(entry.bins); }) : skip();
    });
    if (!done || !has_domain) {
      return refuse("expected a domain");
    }
    if (learned.idle.size() < Learned::kMaxEntries) {
      learned.add(std::move(entry));
    }
    return true;
  }

  bool read_domain(Domain& domain) {
    std::string name;
    if (!text(name)) {
      return false;
    }
    const auto found = std::ranges::find(kDomains, name, [](Domain d) { return to_string(d); });
    if (found == kDomains.end()) {
      return refuse(fmt::format("unknown domain '{}'", printable(name)));
    }
    domain = *found;
    return true;
  }

  bool read_estimate(PowerEstimate& estimate) {
    const bool done = scanner_.take('[') && number(estimate.watts) && scanner_.take(',') &&
                      number(estimate.deviation) && scanner_.take(']');
    if (!done) {
      return refuse("expected [watts, deviation]");
    }
    return estimate.plausible() || refuse(fmt::format("impossible watts and deviation [{}, {}]",
                                                      estimate.watts, estimate.deviation));
  }

  bool read_unit(std::string_view name, std::vector<Learned::UnitCore>& units) {
    PowerEstimate core;
    if (!read_estimate(core)) {
      return false;
    }
    if (name.size() <= Learned::kMaxUnitName && units_++ < Learned::kMaxUnits) {
      units.push_back({.unit = std::string(name), .core = core});
    }
    return true;
  }

  template <std::size_t size>
  bool numbers(std::array<double, size>& values) {
    std::size_t count = 0;
    const bool done = array([&] {
      double value = 0;
      if (!number(value)) {
        return false;
      }
      if (count < size) {
        values.at(count) = value;
      }
      ++count;
      return true;
    });
    return done && (count == size || refuse(fmt::format("expected {} numbers", size)));
  }

  bool read_lag(Learned& learned) {
    Learned::Lag entry;
    const bool done = object([&](std::string_view key) {
      if (key == "source") {
        return text(entry.source);
      }
      if (key == "known") {
        return text(entry.known);
      }
      if (key == "delay") {
        return number(entry.state.lag.delay);
      }
      if (key == "window") {
        return number(entry.state.lag.window);
      }
      if (key == "by_power") {
        return numbers(entry.state.by_power);
      }
      if (key == "by_use") {
        return numbers(entry.state.by_use);
      }
      return key == "line" ? numbers(entry.state.line) : skip();
    });
    if (!done) {
      return false;
    }
    if (!entry.state.plausible()) {
      return refuse(fmt::format("impossible lag of '{}'", printable(entry.source)));
    }
    if (learned.lags.size() < Learned::kMaxEntries) {
      learned.lags.push_back(std::move(entry));
    }
    return true;
  }

  bool read_bin(std::vector<IdlePower::Bin>& bins) {
    IdlePower::Bin bin;
    const bool done = scanner_.take('[') && number(bin.use) && scanner_.take(',') &&
                      number(bin.watts) && scanner_.take(',') && number(bin.windows) &&
                      scanner_.take(']');
    if (!done) {
      return refuse("expected [use, watts, windows]");
    }
    if (!bin.plausible()) {
      return refuse(fmt::format("impossible use, watts and windows [{}, {}, {}]", bin.use,
                                bin.watts, bin.windows));
    }
    if (bins.size() == IdlePower::kBins) {
      return refuse(fmt::format("more than {} bins", IdlePower::kBins));
    }
    bins.push_back(bin);
    return true;
  }

  JsonScanner scanner_;
  const MachineIdentity& machine_;
  bool version_ = false;
  bool identified_ = false;
  std::size_t units_ = 0;
  std::string error_;
};

}  // namespace

bool Learned::Idle::same_place(const Idle& other) const {
  return domain == other.domain && socket == other.socket && device == other.device &&
         meters == other.meters;
}

void Learned::add(Idle entry) {
  if (!entry.bins.empty() || entry.estimate) {
    idle.push_back(std::move(entry));
  }
}

const Learned::Idle* Learned::find(const Idle& place) const {
  const auto found =
      std::ranges::find_if(idle, [&place](const Idle& entry) { return entry.same_place(place); });
  return found == idle.end() ? nullptr : &*found;
}

const std::vector<IdlePower::Bin>& Learned::bins_of(const Idle& place) const {
  static const std::vector<IdlePower::Bin> none;
  const Idle* found = find(place);
  return found == nullptr ? none : found->bins;
}

const MeterLag::State* Learned::lag_of(std::string_view source, std::string_view known) const {
  const auto found = std::ranges::find_if(
      lags, [&](const Lag& entry) { return entry.source == source && entry.known == known; });
  return found == lags.end() ? nullptr : &found->state;
}

void Learned::put(Idle entry) {
  std::erase_if(idle, [&entry](const Idle& other) { return other.same_place(entry); });
  add(std::move(entry));
}

void Learned::put(Lag entry) {
  std::erase_if(lags, [&entry](const Lag& other) {
    return other.source == entry.source && other.known == entry.known;
  });
  lags.push_back(std::move(entry));
}

const MeterLag::State* Learned::lag_of(std::string_view source) const {
  const auto found = std::ranges::find(lags, source, &Lag::source);
  return found == lags.end() ? nullptr : &found->state;
}

void Learned::add_missing(const Learned& older) {
  for (const Idle& entry : older.idle) {
    if (bins_of(entry).empty()) {
      add(entry);
    }
  }
  for (const Lag& entry : older.lags) {
    if (lag_of(entry.source, entry.known) == nullptr) {
      lags.push_back(entry);
    }
  }
  numbers.insert(older.numbers.begin(), older.numbers.end());
}

namespace {

void write_estimate(JsonWriter& json,
                    std::string_view key,
                    const std::optional<PowerEstimate>& estimate) {
  if (estimate && estimate->plausible()) {
    json.key(key).begin_array().value(estimate->watts).value(estimate->deviation).end_array();
  }
}

template <std::size_t size>
void write_numbers(JsonWriter& json, std::string_view key, const std::array<double, size>& values) {
  json.key(key).begin_array();
  for (const double value : values) {
    json.value(value);
  }
  json.end_array();
}

void write_units(JsonWriter& json,
                 const std::vector<Learned::UnitCore>& units,
                 std::size_t& written) {
  const auto usable = [](const Learned::UnitCore& unit) {
    return unit.unit.size() <= Learned::kMaxUnitName && unit.core.plausible();
  };
  if (std::ranges::none_of(units, usable)) {
    return;
  }
  json.key("units").begin_object();
  for (const Learned::UnitCore& unit : units) {
    if (usable(unit) && written < Learned::kMaxUnits) {
      ++written;
      write_estimate(json, unit.unit, unit.core);
    }
  }
  json.end_object();
}

void write_lags(JsonWriter& json, const std::vector<Learned::Lag>& lags) {
  json.key("lags").begin_array();
  for (const Learned::Lag& entry : lags) {
    if (entry.state.plausible()) {
      json.begin_object().member("source", entry.source).member("known", entry.known);
      json.member("delay", entry.state.lag.delay).member("window", entry.state.lag.window);
      write_numbers(json, "by_power", entry.state.by_power);
      write_numbers(json, "by_use", entry.state.by_use);
      write_numbers(json, "line", entry.state.line);
      json.end_object();
    }
  }
  json.end_array();
}

}  // namespace

std::string to_json(const Learned& learned, const MachineIdentity& machine) {
  std::string text;
  JsonWriter json(text, JsonEscape::kPlain);
  json.begin_object().member("version", kVersion).key("machine").begin_object();
  json.member("id", machine.id).member("cpu", machine.cpu);
  json.member("sockets", static_cast<std::int64_t>(machine.sockets));
  json.member("cpus", static_cast<std::int64_t>(machine.cpus)).end_object();
  std::size_t units = 0;
  json.key("idle").begin_array();
  for (std::size_t i = 0; i < std::min(learned.idle.size(), Learned::kMaxEntries); ++i) {
    const Learned::Idle& entry = learned.idle[i];
    json.begin_object().member("domain", to_string(entry.domain));
    if (entry.socket) {
      json.member("socket", *entry.socket);
    }
    if (!entry.device.empty()) {
      json.member("device", entry.device);
    }
    json.member("meters", entry.meters).key("bins").begin_array();
    for (const IdlePower::Bin& bin : entry.bins) {
      json.begin_array().value(bin.use).value(bin.watts).value(bin.windows).end_array();
    }
    json.end_array();
    write_estimate(json, "estimate", entry.estimate);
    write_estimate(json, "core", entry.core);
    write_estimate(json, "system", entry.system);
    write_estimate(json, "losses", entry.losses);
    write_units(json, entry.units, units);
    json.end_object();
  }
  json.end_array();
  write_lags(json, learned.lags);
  json.key("numbers").begin_object();
  std::size_t count = 0;
  for (const auto& [name, value] : learned.numbers) {
    if (std::isfinite(value) && count++ < Learned::kMaxEntries) {
      json.member(name, value);
    }
  }
  json.end_object().end_object();
  text += '\n';
  return text;
}

Result<Learned> from_json(std::string_view text, const MachineIdentity& machine) {
  Learned learned;
  Reader reader(text, machine);
  if (!reader.read(learned)) {
    return fail(ErrorCode::kParse, "{}", reader.error());
  }
  return learned;
}

IdleEstimates idle_estimates(const Learned& learned, const AssumedIdle& assumed) {
  IdleEstimates estimates{};
  for (const Learned::Idle& entry : learned.idle) {
    if (entry.domain == Domain::kOther && estimates.at(index(Domain::kOther))) {
      continue;  // beside other known domains
    }
    const double ratio = entry.domain == Domain::kPackage ? assumed.packages
                         : entry.domain == Domain::kDram  ? assumed.memory
                                                          : assumed.node;
    IdlePower idle =
        entry.device.empty() ? IdlePower::of_cpus(ratio) : IdlePower(Account::kDeviceFullLoadIdle);
    idle.restore(entry.bins);
    if (const auto part = entry.estimate ? entry.estimate : idle.estimate()) {
      auto& sum = estimates.at(index(entry.domain));
      sum = {.watts = (sum ? sum->watts : 0) + part->watts,
             .deviation = (sum ? sum->deviation : 0) + part->deviation};
    }
  }
  return estimates;
}

MachineIdentity this_machine(const host::Paths& paths, const std::string& machine_id_file) {
  constexpr std::size_t kIdBytes = 16;
  MachineIdentity machine;
  const auto id = host::read_file(machine_id_file, 256);
  utsname system{};
  ::uname(&system);
  const std::string hash =
      crypto::sha256(fmt::format("ceems energy state\n{}\n{}", id ? trim(*id) : "",
                                 static_cast<const char*>(system.nodename)));
  machine.id = crypto::hex(std::string_view(hash).substr(0, kIdBytes));
  const auto text = host::read_file((paths.proc / "cpuinfo").string());
  const auto cpus = text ? host::parse_cpuinfo(*text) : fail(text.error());
  if (cpus) {
    machine.cpu = cpus->model_name;
    machine.sockets = cpus->sockets;
    machine.cpus = cpus->processors;
  }
  return machine;
}

}  // namespace ceems::exporter::energy
