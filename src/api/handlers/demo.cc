// Invented units and usage, for dashboards under construction. Nobody's data: no identity needed.
#include <array>
#include <random>

#include "api/envelope.h"
#include "api/handlers/handlers.h"
#include "config/yaml.h"
#include "store/json.h"

namespace ceems::api {
namespace {

constexpr std::array<std::string_view, 3> kManagers{"slurm", "openstack", "k8s"};

class Dice {
 public:
  long number(long low, long high) {
    return std::uniform_int_distribution<long>(low, high)(engine_);
  }
  double real(double high) { return std::uniform_real_distribution<double>(0, high)(engine_); }

 private:
  std::minstd_rand engine_{std::random_device{}()};
};

std::string rfc1123(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  std::array<char, 64> text{};
  const std::size_t size =
      std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S UTC", &parts);
  return std::string(text.data(), size);
}

void append_maps(std::string& out, Dice& dice) {
  const auto map = [&out](std::string_view name, const model::MetricMap& values) {
    fmt::format_to(std::back_inserter(out), ",\"{}\":", name);
    store::append_metric_map(out, values);
  };
  const auto whole = [&dice](long high) { return static_cast<double>(dice.number(0, high)); };
  map("avg_cpu_usage", {{"usage", dice.real(100)}});
  map("avg_cpu_mem_usage", {{"usage", dice.real(100)}});
  map("total_cpu_energy_usage_kwh", {{"usage", dice.real(100)}});
  map("total_cpu_emissions_gms", {{"rte", dice.real(1000)}});
  map("avg_gpu_usage", {{"usage", dice.real(100)}});
  map("avg_gpu_mem_usage", {{"usage", dice.real(100)}});
  map("total_gpu_energy_usage_kwh", {{"usage", dice.real(100)}});
  map("total_gpu_emissions_gms", {{"rte", dice.real(1000)}});
  for (const std::string_view name : {"total_io_write_stats", "total_io_read_stats"}) {
    map(name, {{"bytes", whole(1'000'000'000)}, {"requests", whole(1'000'000)}});
  }
  for (const std::string_view name : {"total_ingress_stats", "total_egress_stats"}) {
    map(name, {{"bytes", whole(1'000'000'000)}, {"packets", whole(1'000'000)}});
  }
}

void append_times(std::string& out, Dice& dice) {
  const double walltime = static_cast<double>(dice.number(60, 86400));
  out += ",\"total_time_seconds\":";
  store::append_metric_map(
      out, {{"walltime", walltime},
            {"alloc_cputime", walltime * static_cast<double>(dice.number(1, 128))},
            {"alloc_cpumemtime", walltime * static_cast<double>(dice.number(1, 1024))},
            {"alloc_gputime", walltime * static_cast<double>(dice.number(0, 8))},
            {"alloc_gpumemtime", walltime}});
}

}  // namespace

void get_demo_units(const Services& services, Call& call) {
  constexpr int kUnits = 100;
  constexpr int kRunning = 20;
  Dice dice;
  const std::int64_t now = services.now_ms() / 1000;
  std::string data = "[";
  for (int i = kUnits; i > 0; --i) {
    const bool running = i > kUnits - kRunning;
    const std::string_view manager = kManagers[static_cast<std::size_t>(dice.number(0, 2))];
    const std::int64_t started = now - dice.number(7200, 172800);
    const std::int64_t created = started - dice.number(1, 7200);
    const std::int64_t ended = running ? 0 : started + dice.number(60, 7200);
    fmt::format_to(
        std::back_inserter(data),
        R"({}{{"cluster_id":"{}-{}","resource_manager":"{}","uuid":"{}",)"
        R"("name":"demo-{}","project":"project{}","groupname":"group","username":"user1",)"
        R"("created_at":"{}","started_at":"{}","ended_at":"{}",)"
        R"("created_at_ts":{},"started_at_ts":{}{},"elapsed":"{}","state":"{}",)"
        R"("allocation":{{"cpus":{},"gpus":{},"mem":{},"nodes":{}}})",
        data.size() > 1 ? "," : "", manager, dice.number(0, 2), manager,
        dice.number(100000, 999999), i, dice.number(1, 5), rfc1123(created), rfc1123(started),
        running ? "Unknown" : rfc1123(ended), created, started,
        running ? "" : fmt::format(",\"ended_at_ts\":{}", ended),
        config::go_duration(((running ? now : ended) - started) * 1000),
        running ? "RUNNING" : "COMPLETED", dice.number(1, 128), dice.number(0, 8),
        dice.number(1, 64) << 30, dice.number(1, 8));
    append_times(data, dice);
    append_maps(data, dice);
    data += '}';
  }
  data += ']';
  answer_data(*call.response, data);
}

void get_demo_usage(const Services& /*services*/, Call& call) {
  constexpr int kUsers = 7;
  Dice dice;
  std::string data = "[";
  for (int user = 1; user <= kUsers; ++user) {
    const long first = dice.number(1, 5);
    const long count = dice.number(1, 3);
    for (long project = first; project < first + count; ++project) {
      fmt::format_to(
          std::back_inserter(data),
          R"({}{{"cluster_id":"","resource_manager":"{}","num_units":{},"project":"project{}",)"
          R"("groupname":"group","username":"user{}")",
          data.size() > 1 ? "," : "", kManagers[static_cast<std::size_t>(dice.number(0, 2))],
          dice.number(1, 1000), project, user);
      append_times(data, dice);
      append_maps(data, dice);
      data += '}';
    }
  }
  data += ']';
  answer_data(*call.response, data);
}

}  // namespace ceems::api
