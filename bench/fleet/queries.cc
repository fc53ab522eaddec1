// What the detectors ask of a TSDB, how long that takes, and what it costs the TSDB.
//
//   fleet_queries URL NOW_MS
//
// queries.py fills a TSDB and starts it. Prints a row for each query.
#include <chrono>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/tsdb/fleet.h"
#include "base/clock.h"
#include "base/strings.h"
#include "testing/fake_clock.h"
#include "tsdb/client.h"

namespace {

using namespace ceems;  // NOLINT(google-build-using-namespace)

/// Prints how long each query takes.
class Timed : public tsdb::Transport {
 public:
  Timed(std::string url, std::unique_ptr<tsdb::Transport> transport)
      : url_(std::move(url)), transport_(std::move(transport)) {}
  Result<net::ClientResponse> get(const std::string& url) override { return transport_->get(url); }
  Result<net::ClientResponse> post_form(const std::string& url, const std::string& form) override {
    const double cpu = cpu_seconds();
    const auto begin = std::chrono::steady_clock::now();
    auto answer = transport_->post_form(url, form);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    fmt::print("| {} | {} | {:.2f} | {:.2f} | {} |\n", detector_, ++queries_, took.count(),
               cpu_seconds() - cpu,
               answer ? fmt::format("{:.1f} MB", static_cast<double>(answer->body.size()) / 1e6)
                      : answer.error().message);
    return answer;
  }
  void cancel() override { transport_->cancel(); }
  void begin(std::string detector) {
    detector_ = std::move(detector);
    queries_ = 0;
  }

 private:
  double cpu_seconds() {
    constexpr std::string_view kName = "\nprocess_cpu_seconds_total ";
    const auto page = transport_->get(url_ + "/metrics");
    const std::size_t at = page ? page->body.find(kName) : std::string::npos;
    return at == std::string::npos ? 0 : std::atof(page->body.c_str() + at + kName.size());
  }
  std::string url_, detector_;
  int queries_ = 0;
  std::unique_ptr<tsdb::Transport> transport_;
};

template <typename Answer>
void tell(std::string_view detector, const Answer& answer) {
  if (!answer) {
    fmt::print(stderr, "{}: {}\n", detector, answer.error().message);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::span<char*> arguments(argv, static_cast<std::size_t>(argc));
  if (arguments.size() != 3) {
    fmt::print(stderr, "fleet_queries URL NOW_MS\n");
    return 2;
  }
  const std::string url = arguments[1];
  ceems::testing::FakeClock clock;
  clock.step_to(Clock::SystemTime(std::chrono::milliseconds(std::atoll(arguments[2]))));
  net::ClientOptions patient;
  patient.timeout = std::chrono::minutes(2);
  auto http = tsdb::http_transport(patient);
  if (!http) {
    fmt::print(stderr, "{}\n", http.error().message);
    return 1;
  }
  auto owned = std::make_unique<Timed>(url, *std::move(http));
  Timed& timed = *owned;
  api::ClusterTsdbs tsdbs;
  tsdbs["c"].client = std::make_unique<tsdb::Client>(url, std::move(owned), clock);
  api::Fleet fleet(tsdbs, clock);
  fmt::print(
      "| Detector | Query | Seconds | CPU of the TSDB, s | Answer |\n"
      "|---|---:|---:|---:|---:|\n");
  timed.begin("stragglers of all units");
  const auto slow = fleet.all_stragglers("c");
  tell("stragglers", slow);
  timed.begin("file systems");
  const auto load = fleet.io_load("c");
  tell("file systems", load);
  timed.begin("neighbours of a node");
  tell("neighbours", fleet.neighbours("c", {"n1"}, clock.now_ms()));
  timed.begin("signs of nodes");
  tell("signs", fleet.hard_signs("c"));
  timed.begin("held and idle");
  tell("idle", fleet.idle_units("c"));
  fmt::print("\n{} units with slow members, {} storms\n", slow ? (*slow)->size() : 0,
             load ? (*load)->storms.size() : 0);
  return 0;
}
