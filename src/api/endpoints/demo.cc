// Random units and usage, for developing dashboards. They need no identity, because the data is not
// real.
#include <array>
#include <chrono>
#include <random>

#include "api/answer/envelope.h"
#include "api/endpoints/all.h"
#include "base/json.h"
#include "config/duration.h"
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

void add_map(JsonWriter& json, std::string_view name, const model::MetricMap& map) {
  store::append_metric_map(json.key(name).begin_value(), map);
}

void add_metrics(JsonWriter& json, Dice& dice) {
  const auto whole = [&dice](long high) { return static_cast<double>(dice.number(0, high)); };
  add_map(json, "avg_cpu_usage", {{"usage", dice.real(100)}});
  add_map(json, "avg_cpu_mem_usage", {{"usage", dice.real(100)}});
  add_map(json, "total_cpu_energy_usage_kwh", {{"usage", dice.real(100)}});
  add_map(json, "total_cpu_emissions_gms", {{"rte", dice.real(1000)}});
  add_map(json, "avg_gpu_usage", {{"usage", dice.real(100)}});
  add_map(json, "avg_gpu_mem_usage", {{"usage", dice.real(100)}});
  add_map(json, "total_gpu_energy_usage_kwh", {{"usage", dice.real(100)}});
  add_map(json, "total_gpu_emissions_gms", {{"rte", dice.real(1000)}});
  for (const std::string_view name : {"total_io_write_stats", "total_io_read_stats"}) {
    add_map(json, name, {{"bytes", whole(1'000'000'000)}, {"requests", whole(1'000'000)}});
  }
  for (const std::string_view name : {"total_ingress_stats", "total_egress_stats"}) {
    add_map(json, name, {{"bytes", whole(1'000'000'000)}, {"packets", whole(1'000'000)}});
  }
}

void add_times(JsonWriter& json, Dice& dice) {
  const double walltime = static_cast<double>(dice.number(60, 86400));
  add_map(json, "total_time_seconds",
          {{"walltime", walltime},
           {"alloc_cputime", walltime * static_cast<double>(dice.number(1, 128))},
           {"alloc_cpumemtime", walltime * static_cast<double>(dice.number(1, 1024))},
           {"alloc_gputime", walltime * static_cast<double>(dice.number(0, 8))},
           {"alloc_gpumemtime", walltime}});
}

void add_unit(JsonWriter& json, Dice& dice, int number, bool running, std::int64_t now) {
  const std::string_view manager = kManagers[static_cast<std::size_t>(dice.number(0, 2))];
  const std::int64_t started = now - dice.number(7200, 172800);
  const std::int64_t created = started - dice.number(1, 7200);
  const std::int64_t ended = running ? 0 : started + dice.number(60, 7200);
  json.begin_object().member("cluster_id", fmt::format("{}-{}", manager, dice.number(0, 2)));
  json.member("resource_manager", manager);
  json.member("uuid", std::to_string(dice.number(100000, 999999)));
  json.member("name", fmt::format("demo-{}", number));
  json.member("project", fmt::format("project{}", dice.number(1, 5)));
  json.member("groupname", "group").member("username", "user1");
  json.member("created_at", rfc1123(created)).member("started_at", rfc1123(started));
  json.member("ended_at", running ? "Unknown" : rfc1123(ended));
  json.member("created_at_ts", created).member("started_at_ts", started);
  if (!running) {
    json.member("ended_at_ts", ended);
  }
  json.member("elapsed",
              config::go_duration(std::chrono::seconds((running ? now : ended) - started)));
  json.member("state", running ? "RUNNING" : "COMPLETED");
  json.key("allocation").begin_object().member("cpus", dice.number(1, 128));
  json.member("gpus", dice.number(0, 8)).member("mem", dice.number(1, 64) << 30);
  json.member("nodes", dice.number(1, 8)).end_object();
  add_times(json, dice);
  add_metrics(json, dice);
  json.end_object();
}

void get_demo_units(const Services& services, Call& call) {
  constexpr int kUnits = 100;
  constexpr int kRunning = 20;
  Dice dice;
  const std::int64_t now = services.now_ms() / 1000;
  std::string data;
  JsonWriter json(data);
  json.begin_array();
  for (int i = kUnits; i > 0; --i) {
    add_unit(json, dice, i, i > kUnits - kRunning, now);
  }
  json.end_array();
  answer_data(*call.response, data);
}

void get_demo_usage(const Services& /*services*/, Call& call) {
  constexpr int kUsers = 7;
  Dice dice;
  std::string data;
  JsonWriter json(data);
  json.begin_array();
  for (int user = 1; user <= kUsers; ++user) {
    const long first = dice.number(1, 5);
    const long count = dice.number(1, 3);
    for (long project = first; project < first + count; ++project) {
      json.begin_object().member("cluster_id", "");
      json.member("resource_manager", kManagers[static_cast<std::size_t>(dice.number(0, 2))]);
      json.member("num_units", dice.number(1, 1000));
      json.member("project", fmt::format("project{}", project)).member("groupname", "group");
      json.member("username", fmt::format("user{}", user));
      add_times(json, dice);
      add_metrics(json, dice);
      json.end_object();
    }
  }
  json.end_array();
  answer_data(*call.response, data);
}

}  // namespace

Endpoints demo_endpoints() {
  return {{.path = "demo/units",
           .caller = Caller::kAnyone,
           .summary = "Random units, for developing dashboards.",
           .handler = get_demo_units,
           .data = {.name = "Unit", .fields = store::unit_fields()},
           .tagged = false},
          {.path = "demo/usage",
           .caller = Caller::kAnyone,
           .summary = "Random usage, for developing dashboards.",
           .handler = get_demo_usage,
           .data = {.name = "Usage", .fields = store::usage_fields()},
           .tagged = false}};
}

}  // namespace ceems::api
