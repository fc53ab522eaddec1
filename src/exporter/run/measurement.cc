#include "exporter/run/measurement.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "base/strings.h"
#include "exporter/energy/meter/apu_power.h"
#include "exporter/energy/meter/cray_meter.h"
#include "exporter/energy/meter/host_meters.h"
#include "exporter/energy/meter/power_model.h"
#include "exporter/energy/meter/socket_rails.h"
#include "exporter/gpu/claim/claim.h"
#include "exporter/run/own_devices.h"
#include "exporter/run/placement.h"
#include "exporter/run/report/report.h"
#include "host/read_file.h"

namespace ceems::exporter::run {
namespace {

bool shows_rapl(const host::Paths& paths) {
  const auto names = host::list_directory((paths.sys / "class/powercap").string());
  return names && std::ranges::any_of(*names, [](const std::string& name) {
           return name.starts_with("intel-rapl:");
         });
}

/// The CPUs on which at least one of the processes may run, ascending.
std::vector<int> allowed_cpus(const std::vector<int>& pids) {
  constexpr int kMaxCpus = 8192;
  std::vector<int> cpus;
  cpu_set_t* const set = CPU_ALLOC(kMaxCpus);
  cpu_set_t* const all = CPU_ALLOC(kMaxCpus);
  const std::size_t size = CPU_ALLOC_SIZE(kMaxCpus);
  if (set != nullptr && all != nullptr) {
    CPU_ZERO_S(size, all);
    for (const int pid : pids) {
      if (::sched_getaffinity(pid, size, set) == 0) {
        CPU_OR_S(size, all, all, set);
      }
    }
    for (int cpu = 0; cpu < kMaxCpus; ++cpu) {
      if (CPU_ISSET_S(static_cast<unsigned>(cpu), size, all)) {
        cpus.push_back(cpu);
      }
    }
  }
  CPU_FREE(all);
  CPU_FREE(set);
  return cpus;
}

/// The processes of the job that are known without looking for them.
std::vector<int> known_processes(const Job& job) {
  return job.members.empty() ? std::vector<int>{::getpid()} : job.members;
}

std::string header_of(const MeasurementOptions& options) {
  constexpr std::size_t kBootId = 64;
  const auto boot =
      host::read_file((options.paths.proc / "sys/kernel/random/boot_id").string(), kBootId);
  std::string text;
  JsonWriter json(text, JsonEscape::kPlain);
  json.begin_object().member("job", options.job.id).member("cluster", options.job.cluster);
  json.member("node", options.job.node).member("user_mode", true);
  json.member("boot", boot ? trim(*boot) : std::string_view()).member("t0", options.begin_ms);
  json.end_object();
  return text;
}

}  // namespace

std::string describe_energy(const energy::Account& account, bool has_rapl) {
  using energy::Domain;
  using energy::Method;
  std::vector<std::string> parts;
  if (!account.device_sources().empty()) {
    parts.emplace_back("GPUs measured");
  }
  bool packages = false;
  std::string node;
  bool modelled = false;
  for (const energy::SourceAccount& source : account.sources()) {
    const bool seen = source.fresh.has_value();
    packages = packages || (seen && source.info.domain == Domain::kPackage);
    if (seen && source.info.domain == Domain::kNode && source.info.name != "sum") {
      modelled = modelled || source.info.method == Method::kModelled;
      node = source.info.method == Method::kModelled ? node : source.info.name;
    }
  }
  if (!node.empty()) {
    parts.push_back(fmt::format("node measured ({})", node));
  }
  if (packages) {
    parts.emplace_back("CPUs measured");
  } else if (node.empty()) {
    parts.push_back(fmt::format("CPUs {} ({})", modelled ? "modelled" : "not measured",
                                has_rapl ? "RAPL needs root here" : "this machine shows no RAPL"));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

Measurement::Measurement(const MeasurementOptions& options,
                         const DataDirectory& directory,
                         const Clock& clock)
    : options_(options),
      directory_(directory),
      file_name_(file_name_of(options.job.node)),
      has_rapl_(shows_rapl(options.paths)),
      next_limit_(options.max_bytes) {
  constexpr std::size_t kMaxCgroups = 65'536;
  const std::vector<int> known = known_processes(options.job);
  const std::string process = options.job.members.empty() ? "self" : std::to_string(known.front());
  const auto cgroups =
      host::read_file((options.paths.proc / process / "cgroup").string(), kMaxCgroups);
  source_ = std::make_shared<JobSource>(
      JobSource::Options{.paths = options.paths,
                         .job = options.job,
                         .self_cgroups = cgroups.value_or(std::string()),
                         .allowed_cpus = allowed_cpus(known),
                         .self = ::getpid()},
      clock);
  recorder_ = std::make_unique<Recorder>(NodeSummary{.job = options.job.id,
                                                     .name = options.name,
                                                     .cluster = options.job.cluster,
                                                     .node = options.job.node,
                                                     .unit = {},
                                                     .begin_ms = options.begin_ms,
                                                     .end_ms = options.begin_ms},
                                         source_, options.marks, options.interval, clock);
  const energy::SocketParts parts{.rails = std::make_shared<energy::SocketRails>(),
                                  .apu = std::make_shared<energy::ApuPower>()};
  auto meters = energy::find_meters(options.paths, clock, {}, parts);
  if (auto cray = energy::find_cray_meter(options.paths.sys.string())) {
    meters.push_back(std::move(cray));
  }
  energy::DeviceMeterList devices;
  if (auto libraries = load_gpu_libraries(options.paths); !libraries.empty()) {
    monitor_ = std::make_shared<gpu::Monitor>(
        gpu::MonitorOptions{
            .interval = options.interval,
            .max_age = std::max(std::chrono::milliseconds(30'000), 5 * options.interval),
            .patience = std::chrono::milliseconds(500),
            .first_wait = std::chrono::milliseconds(500)},
        clock, std::move(libraries), nullptr, std::make_shared<gpu::ProcessList>());
    devices.push_back(std::make_shared<OwnDevices>(monitor_, options.job));
    devices.back()->set_host(parts);
    source_->want_processes();
  }
  const energy::ModelMeter* model = energy::find_model(meters);
  const auto assumed =
      model == nullptr ? energy::AssumedIdle{} : energy::assumed_idle(model->model());
  sampler_ = std::make_unique<energy::Sampler>(
      energy::SamplerOptions{.interval = options.interval,
                             .account = {.idle_watts = {}, .assumed = assumed}},
      clock, options.paths, std::vector<std::shared_ptr<UnitSource>>{source_}, std::move(meters),
      std::move(devices));
  sampler_->on_sample([this](const energy::Account& account, Clock::SteadyTime time) {
    recorder_->take(account, time);
  });
}

Result<std::unique_ptr<Measurement>> Measurement::create(const MeasurementOptions& options,
                                                         const DataDirectory& directory,
                                                         const Clock& clock) {
  std::unique_ptr<Measurement> made(new Measurement(options, directory, clock));
  CEEMS_TRY(file, JobFileWriter::create(directory, made->file_name_ + std::string(kSamplesEnding),
                                        header_of(options)));
  made->file_ = std::make_unique<JobFileWriter>(std::move(file));
  return made;
}

Measurement::~Measurement() {
  writer_ = {};  // it uses the other members
}

void Measurement::start() {
  if (monitor_ != nullptr) {
    monitor_->start();
  }
  sampler_->tick(energy::Sampler::Caller::kThread);
  sampler_->start();
  writer_ = std::jthread([this](const std::stop_token& stop) { write(stop); });
}

std::string Measurement::energy() {
  std::string text;
  sampler_->with_account([&](const energy::Account& account, Clock::SteadyTime) {
    text = describe_energy(account, has_rapl_);
  });
  return text;
}

void Measurement::note(const Result<>& result) {
  const MutexLock lock(mutex_);
  if (!result && failure_.empty()) {
    failure_ = result.error().message;
  }
}

/// When they have ended, what was seen before stays.
void Measurement::look_at_ranks() {
  const auto ranks = read_ranks(options_.paths, source_->pids());
  if (!ranks.empty()) {
    recorder_->set_placement(placement_text(options_.paths, ranks), placement_faults(ranks));
  }
}

void Measurement::flush() {
  look_at_ranks();
  const Recorder::Part part = recorder_->take_part();
  note(file_->append(part.lines));
  note(directory_.replace(file_name_ + std::string(kSummaryEnding), to_json(part.summary)));
  if (file_->bytes() > next_limit_) {
    stride_ *= 2;
    next_limit_ += options_.max_bytes / 2;
    recorder_->set_stride(stride_);
  }
}

/// An exception would end the program, and with it the exit status of the command.
void Measurement::try_flush() {
  try {
    flush();
  } catch (const std::exception& exception) {
    note(fail(ErrorCode::kInternal, "{}", exception.what()));
  }
}

void Measurement::write(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    try_flush();
    MutexLock lock(mutex_);
    wake_.wait_for(lock, stop, options_.flush, [] { return false; });
  }
  try_flush();
  const MutexLock lock(mutex_);
  done_ = true;
  wake_.notify_all();
}

bool Measurement::finish(std::optional<int> exit_status, std::chrono::milliseconds patience) {
  sampler_->tick(energy::Sampler::Caller::kThread);
  recorder_->end(exit_status);
  writer_.request_stop();
  MutexLock lock(mutex_);
  return wake_.wait_for(lock, patience, [this]() CEEMS_REQUIRES(mutex_) { return done_; });
}

std::string Measurement::failure() {
  const MutexLock lock(mutex_);
  return failure_;
}

}  // namespace ceems::exporter::run
