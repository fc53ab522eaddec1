#include "exporter/ebpf/programs.h"

#include <linux/bpf.h>
#include <sys/capability.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <set>
#include <system_error>

#include "base/fd.h"
#include "os/privileges.h"

namespace ceems::exporter::ebpf {
namespace {

/// Reads tables with a value per CPU, many rows with one system call.
class TableReader {
 public:
  explicit TableReader(unsigned cpus) : cpus_(cpus) {}

  /// Appends the rows of the table with this descriptor, summed over the CPUs. kInternal: the
  /// kernel refuses. Rows that are added or deleted meanwhile may be missing or appear twice: the
  /// caller keeps the largest.
  template <class Key, class Value>
  Result<> read(int map, Rows<Key, Value>& rows) {
    std::size_t most = std::max<std::size_t>(kMinRows, kBytes / (sizeof(Value) * cpus_));
    std::vector<Key> keys;
    std::vector<Value> values;
    std::array<std::uint32_t, 2> places{};  // where the kernel goes on
    bool first = true;
    while (true) {
      keys.resize(most);
      values.resize(most * cpus_);
      auto count = static_cast<std::uint32_t>(most);
      const int error = bpf().map_lookup_batch(map, first ? nullptr : &places[0], &places[1],
                                               keys.data(), values.data(), &count, nullptr);
      if (error != 0 && errno == ENOSPC && most < kMaxRows) {
        most *= 2;  // one of the hash table's chains is longer
        continue;
      }
      if (error != 0 && errno != ENOENT) {
        return fail(ErrorCode::kInternal, "{}", std::generic_category().message(errno));
      }
      for (std::size_t i = 0; i < count; ++i) {
        Value sum{};
        for (const Value& value : std::span(values).subspan(i * cpus_, cpus_)) {
          sum = add(sum, value);
        }
        rows.emplace_back(keys[i], sum);
      }
      if (error != 0) {
        return {};
      }
      first = false;
      places[0] = places[1];
    }
  }

 private:
  static constexpr std::size_t kBytes = std::size_t{256} << 10U;
  static constexpr std::size_t kMinRows = 16;
  static constexpr std::size_t kMaxRows = 65536;

  unsigned cpus_;
};

constexpr std::size_t kTableBytes = std::size_t{16} << 20U;
constexpr std::uint32_t kMinRows = 1024;
constexpr std::uint32_t kMaxRows = 4096;
constexpr std::uint32_t kMaxCalls = 16384;
constexpr const char* kIterator = "open_connections";

/// What each program needs to be there.
struct Wanted {
  const KernelTypes& types;
  bool latency;
};

/// The kernel function in the section name of a program, e.g. "fexit/vfs_read".
std::string_view function_of(const ::bpf_program* program) {
  const std::string_view section = bpf().program_section(program);
  const auto slash = section.find('/');
  return slash == std::string_view::npos ? section : section.substr(slash + 1);
}

bool is_iterator(const ::bpf_program* program) {
  return std::string_view(bpf().program_name(program)) == kIterator;
}

bool is_wanted(const ::bpf_program* program, const Wanted& wanted) {
  if (is_iterator(program)) {
    return wanted.types.function("bpf_iter_bpf_map_elem").has_value();
  }
  const std::string_view function = function_of(program);
  const auto hook = std::ranges::find(all_hooks(), function, &Hook::function);
  const bool starts_clock = std::string_view(bpf().program_name(program)).starts_with("begin_") &&
                            function != "vfs_copy_file_range";
  const bool for_latency = starts_clock || (hook != all_hooks().end() && hook->latency);
  return (!for_latency || wanted.latency) &&
         wanted.types.function(std::string(function)).has_value();
}

template <class Use>
void for_each_program(const ::bpf_object* object, const Use& use) {
  for (::bpf_program* program = bpf().object_next_program(object, nullptr); program != nullptr;
       program = bpf().object_next_program(object, program)) {
    use(program);
  }
}

std::string error_text(int error) {
  return std::generic_category().message(error < 0 ? -error : error);
}

Error load_error(int error) {
  if (error == -EPERM || error == -EACCES) {
    return {ErrorCode::kPermissionDenied,
            fmt::format("the kernel refuses eBPF programs: {}", error_text(error))};
  }
  return {ErrorCode::kInternal,
          fmt::format("the kernel rejects the eBPF programs: {}", error_text(error))};
}

/// Opens an object and prepares it: constants, sizes, and the programs in `only` or all but `off`.
template <class Prepare>
Result<BpfObject> open_object(std::string_view image,
                              const ebpf_settings& settings,
                              const Prepare& prepare) {
  BpfObject object(bpf().object_open(image.data(), image.size(), nullptr));
  const long error = bpf().get_error(object.get());
  if (object.get() == nullptr || error != 0) {
    return fail(ErrorCode::kInternal, "cannot read the eBPF programs: {}",
                error_text(static_cast<int>(error)));
  }
  ::bpf_map* const constants = bpf().object_map(object.get(), ".rodata.settings");
  if (constants == nullptr ||
      bpf().map_set_initial_value(constants, &settings, sizeof(settings)) != 0) {
    return fail(ErrorCode::kInternal, "the eBPF programs have no settings");
  }
  prepare(object.get());
  return object;
}

/// Loads an object. If the kernel rejects it, finds the programs that it rejects, puts their names
/// into `rejected` and loads the others.
template <class Prepare>
Result<BpfObject> load_object(std::string_view image,
                              const ebpf_settings& settings,
                              const Wanted& wanted,
                              const Prepare& prepare,
                              std::set<std::string>& rejected) {
  const auto load = [&](const auto& chosen) -> std::pair<Result<BpfObject>, int> {
    auto object = open_object(image, settings, prepare);
    if (!object) {
      return {std::move(object), 0};
    }
    for_each_program(object->get(), [&](::bpf_program* program) {
      bpf().program_set_autoload(program, is_wanted(program, wanted) && chosen(program));
    });
    const int error = bpf().object_load(object->get());
    if (error != 0) {
      return {fail(load_error(error)), error};
    }
    return {std::move(object), 0};
  };
  auto [object, error] = load([](const ::bpf_program*) { return true; });
  if (object || error == 0 || error == -EPERM) {
    return std::move(object);
  }
  std::vector<std::string> names;
  if (auto opened = open_object(image, settings, prepare)) {
    for_each_program(opened->get(), [&](const ::bpf_program* program) {
      names.emplace_back(bpf().program_name(program));
    });
  }
  for (const std::string& name : names) {
    auto alone =
        load([&](const ::bpf_program* program) { return name == bpf().program_name(program); });
    if (!alone.first) {
      rejected.insert(name);
    }
  }
  if (rejected.size() == names.size()) {
    return fail(load_error(error));
  }
  return load([&](const ::bpf_program* program) {
           return !rejected.contains(bpf().program_name(program));
         })
      .first;
}

std::uint32_t rows_for(std::size_t value_size, unsigned cpus) {
  const std::size_t rows = kTableBytes / (value_size * cpus);
  return std::clamp(static_cast<std::uint32_t>(rows), kMinRows, kMaxRows);
}

void resize(::bpf_object* object, const char* name, std::uint32_t rows) {
  if (::bpf_map* const map = bpf().object_map(object, name)) {
    bpf().map_set_max_entries(map, rows);
  }
}

void add_missing(std::span<const Hook* const> hooks,
                 const std::string& reason,
                 std::vector<MissingHook>& missing) {
  for (const Hook* hook : hooks) {
    missing.push_back({hook->function, hook->loses, reason});
  }
}

template <class Value>
std::optional<Value> look_up(int map, const void* key) {
  const os::RaisedCapabilities raised{CAP_BPF};
  Value value{};
  if (map < 0 || bpf().map_lookup(map, key, &value) != 0) {
    return std::nullopt;
  }
  return value;
}

void forget(int map, const void* key) {
  const os::RaisedCapabilities raised{CAP_BPF};
  if (map >= 0) {
    bpf().map_delete(map, key);
  }
}

void add_lost(int map, ebpf_lost& sum) {
  const std::uint32_t first = 0;
  ebpf_lost lost{};
  if (map >= 0 && bpf().map_lookup(map, &first, &lost) == 0) {
    sum = add(sum, lost);
  }
}

}  // namespace

void FileRuns::note(std::uint32_t operation, std::span<const ebpf_file_run> runs) {
  Runs& noted = runs_.at(operation);
  noted = {};
  for (const ebpf_file_run& run : runs) {
    if (run.begins != run.ends) {
      noted.unsure = true;
      continue;
    }
    if (run.begins == 0) {
      continue;  // this CPU has not counted anything yet
    }
    ebpf_file_value& sum = noted.sums[key_of(run.key)];
    (operation == EBPF_READ ? sum.reads : sum.writes) += run.calls;
    (operation == EBPF_READ ? sum.read_bytes : sum.write_bytes) += run.bytes;
  }
}

void FileRuns::add_to(Rows<ebpf_file_key, ebpf_file_value>& files) const {
  for (const Runs& runs : runs_) {
    std::map<Key, ebpf_file_value> left = runs.sums;
    for (auto& [key, value] : files) {
      if (const auto found = left.find(key_of(key)); found != left.end()) {
        value = add(value, found->second);
        left.erase(found);
      }
    }
    // The row was made after the table was read.
    for (const auto& [key, value] : left) {
      files.emplace_back(ebpf_file_key{.cgroup = key[0], .mount = key[1], .root = key[2]}, value);
    }
  }
}

bool FileRuns::has(const ebpf_file_key& key) const {
  return std::ranges::any_of(
      runs_, [&](const Runs& runs) { return runs.unsure || runs.sums.contains(key_of(key)); });
}

Result<std::unique_ptr<Programs>> Programs::load(const ProgramOptions& options) {
  const os::RaisedCapabilities raised{CAP_BPF, CAP_PERFMON, CAP_SYS_RESOURCE};
  CEEMS_TRY(types, KernelTypes::running());
  ebpf_settings settings{};
  settings.latency = options.latency ? 1 : 0;
  settings.classes = options.networks.empty() ? 0 : 1;
  if (!options.controller.empty()) {
    const auto controller = types.controller(options.controller);
    if (!controller) {
      return fail(ErrorCode::kNotFound, "the kernel has no cgroup controller {}",
                  options.controller);
    }
    settings.legacy = 1;
    settings.controller = *controller;
  }
  std::unique_ptr<Programs> programs(new Programs());
  programs->cpus_ = static_cast<unsigned>(std::max(1, bpf().num_possible_cpus()));
  programs->latency_ = options.latency;
  if (options.files) {
    CEEMS_TRY(programs->load_files(types, settings));
  }
  if (options.network) {
    CEEMS_TRY(programs->load_network(types, settings, options));
  }
  return programs;
}

Result<> Programs::load_files(const KernelTypes& types, ebpf_settings settings) {
  add_missing(fit_hooks(types, HookPart::kFiles, settings), "the kernel has no such function",
              missing_);
  const std::uint32_t rows = rows_for(sizeof(ebpf_file_value), cpus_);
  const auto prepare = [&](::bpf_object* object) {
    resize(object, "files", rows);
    resize(object, "names", rows);
    if (latency_) {
      resize(object, "file_times", rows);
      resize(object, "latencies", rows_for(sizeof(ebpf_latency_value), cpus_) / 4);
      resize(object, "started", kMaxCalls);
    }
  };
  std::set<std::string> rejected;
  CEEMS_TRY(object, load_object(kFilesBpfO, settings, {types, latency_}, prepare, rejected));
  files_ = std::move(object);
  return attach(files_, HookPart::kFiles);
}

Result<> Programs::load_network(const KernelTypes& types,
                                ebpf_settings settings,
                                const ProgramOptions& options) {
  add_missing(fit_hooks(types, HookPart::kNetwork, settings), "the kernel has no such function",
              missing_);
  const auto prepare = [&](::bpf_object* object) {
    resize(object, "traffic", rows_for(sizeof(ebpf_traffic_value), cpus_));
  };
  std::set<std::string> rejected;
  CEEMS_TRY(object, load_object(kNetworkBpfO, settings, {types, false}, prepare, rejected));
  network_ = std::move(object);
  const int networks = network_.map("networks");
  for (const auto& [network, number] : options.networks) {
    if (bpf().map_update(networks, &network, &number, BPF_ANY) != 0) {
      return fail(ErrorCode::kInternal, "too many networks: {}", error_text(errno));
    }
  }
  iterate_connections();
  return attach(network_, HookPart::kNetwork);
}

/// Attaches the loaded programs. A hook without any of its programs is missing.
Result<> Programs::attach(const BpfObject& object, HookPart part) {
  std::size_t attached = 0;
  std::set<std::string_view> failed;
  std::string reason = "the kernel rejects the program";
  std::set<std::string_view> done;
  for_each_program(object.get(), [&](::bpf_program* program) {
    if (is_iterator(program) || !bpf().program_autoload(program)) {
      return;
    }
    ::bpf_link* const link = bpf().program_attach(program);
    const long error = bpf().get_error(link);
    if (link == nullptr || error != 0) {
      reason = error_text(static_cast<int>(error));
      failed.insert(function_of(program));
      return;
    }
    links_.emplace_back(link, bpf().link_destroy);
    programs_.push_back(bpf().program_fd(program));
    done.insert(function_of(program));
    ++attached;
  });
  if (attached == 0) {
    return fail(ErrorCode::kInternal, "no eBPF program can be attached: {}", reason);
  }
  for (const Hook& hook : all_hooks()) {
    const bool known = std::ranges::any_of(
        missing_, [&](const MissingHook& other) { return other.function == hook.function; });
    if (hook.part == part && !known && !hook.spare && (!hook.latency || latency_) &&
        (!done.contains(hook.function) || failed.contains(hook.function))) {
      missing_.push_back({hook.function, hook.loses, reason});
    }
  }
  return {};
}

/// Prepares reading the counters of connections that exist (Linux 5.9 and later).
void Programs::iterate_connections() {
  for_each_program(network_.get(), [&](::bpf_program* program) {
    if (!is_iterator(program) || !bpf().program_autoload(program)) {
      return;
    }
    ::bpf_iter_link_info info{};
    info.map.map_fd = static_cast<std::uint32_t>(network_.map("connections"));
    ::bpf_iter_attach_opts options{};
    options.sz = sizeof(options);
    options.link_info = &info;
    options.link_info_len = sizeof(info);
    ::bpf_link* const link = bpf().program_attach_iter(program, &options);
    if (link != nullptr && bpf().get_error(link) == 0) {
      iterator_ = Link(link, bpf().link_destroy);
    }
  });
  if (!iterator_) {
    missing_.push_back({"bpf_iter_bpf_map_elem", "TCP connections until they end",
                        "the kernel cannot list connections"});
  }
}

Result<> Programs::read_open(std::vector<ebpf_open_connection>& open) {
  if (!iterator_) {
    return {};
  }
  const UniqueFd list(bpf().iter_create(bpf().link_fd(iterator_.get())));
  if (!list.valid()) {
    return fail(ErrorCode::kInternal, "cannot list connections: {}", error_text(errno));
  }
  std::array<ebpf_open_connection, 64> some{};
  std::size_t have = 0;  // bytes in `some`
  while (true) {
    const auto bytes = std::as_writable_bytes(std::span(some)).subspan(have);
    const ssize_t got = ::read(list.get(), bytes.data(), bytes.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
      continue;
    }
    if (got <= 0) {
      break;
    }
    have += static_cast<std::size_t>(got);
    const std::size_t whole = have / sizeof(ebpf_open_connection);
    open.insert(open.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(whole));
    const auto all = std::as_writable_bytes(std::span(some));
    have -= whole * sizeof(ebpf_open_connection);
    std::memmove(all.data(), all.data() + whole * sizeof(ebpf_open_connection), have);
  }
  return {};
}

/// Events that a program did not see because it was running on that CPU (Linux 5.12 and later).
void Programs::add_skipped(Readings& readings) {
  for (const int program : programs_) {
    ::bpf_prog_info info{};
    std::uint32_t size = sizeof(info);
    if (bpf().object_info(program, &info, &size) == 0) {
      readings.skipped += info.recursion_misses;
    }
  }
}

/// Adds what the CPUs count in their runs. After `files` was read: a run that ends in between is in
/// neither, and not in both.
void Programs::add_runs(Rows<ebpf_file_key, ebpf_file_value>& files) {
  const int map = files_.map("runs");
  for (const std::uint32_t operation : {EBPF_READ, EBPF_WRITE}) {
    std::vector<ebpf_file_run> runs(cpus_);
    if (bpf().map_lookup(map, &operation, runs.data()) == 0) {
      runs_.note(operation, runs);
    }
  }
  runs_.add_to(files);
}

Result<Readings> Programs::read() {
  const os::RaisedCapabilities raised{CAP_BPF};
  Readings readings;
  TableReader reader(cpus_);
  Result<> done;
  const auto read_table = [&](const BpfObject& object, const char* name, auto& rows) {
    if (done && object.get() != nullptr) {
      done = reader.read(object.map(name), rows);
    }
  };
  read_table(files_, "files", readings.files);
  if (files_.get() != nullptr) {
    add_runs(readings.files);
  }
  read_table(files_, "names", readings.names);
  if (latency_) {
    read_table(files_, "file_times", readings.file_times);
    read_table(files_, "latencies", readings.latencies);
  }
  // Before the open connections: one that ends in between is then in neither, and not in both.
  read_table(network_, "traffic", readings.traffic);
  if (done) {
    done = read_open(readings.open);
  }
  if (!done) {
    return fail(std::move(done).error().with_context("reading the tables of the eBPF programs"));
  }
  add_lost(files_.map("lost"), readings.lost);
  add_lost(network_.map("lost"), readings.lost);
  add_skipped(readings);
  return readings;
}

std::optional<ebpf_cgroup> Programs::cgroup(std::uint64_t id) {
  if (auto found = look_up<ebpf_cgroup>(files_.map("cgroups"), &id)) {
    return found;
  }
  return look_up<ebpf_cgroup>(network_.map("cgroups"), &id);
}

Rows<std::uint64_t, ebpf_cgroup> Programs::cgroups() {
  const os::RaisedCapabilities raised{CAP_BPF};
  Rows<std::uint64_t, ebpf_cgroup> rows;
  TableReader reader(1);
  for (const BpfObject* const object : {&files_, &network_}) {
    if (object->get() != nullptr) {
      static_cast<void>(reader.read(object->map("cgroups"), rows));  // those that were read count
    }
  }
  return rows;
}

std::optional<ebpf_place> Programs::place(const ebpf_file_key& key) {
  return look_up<ebpf_place>(files_.map("places"), &key);
}

bool Programs::forget_file(const ebpf_file_key& key) {
  if (runs_.has(key)) {
    return false;
  }
  forget(files_.map("files"), &key);
  forget(files_.map("file_times"), &key);
  forget(files_.map("places"), &key);
  return true;
}

void Programs::forget_names(std::uint64_t cgroup) {
  forget(files_.map("names"), &cgroup);
}

void Programs::forget_latency(const ebpf_latency_key& key) {
  forget(files_.map("latencies"), &key);
}

void Programs::forget_cgroup(std::uint64_t id) {
  forget(files_.map("cgroups"), &id);
  forget(network_.map("cgroups"), &id);
}

void Programs::forget_traffic(const ebpf_traffic_key& key) {
  forget(network_.map("traffic"), &key);
}

}  // namespace ceems::exporter::ebpf
