#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "advice/judge.h"
#include "base/result.h"

namespace ceems::report {

/// What is not known is absent, never 0. Shares are from 0 to 1, memory is in bytes, time in
/// seconds, and energy in kWh.
using Number = std::optional<double>;

struct GpuUse {
  std::string index = {}, uuid = {};
  Number busy = {};  ///< share of the run in which a kernel ran
  Number sm = {};    ///< share of the SMs that worked
  Number mem_peak = {}, mem_total = {};
};

struct NodeUse {
  std::string node = {};
  Number cpus = {}, cpu_seconds = {};
  Number mem_peak = {}, mem_alloc = {};
  std::vector<GpuUse> gpus = {};
};

/// The job as it was asked for and ran. Texts are untrusted.
struct Job {
  std::string name = {}, user = {}, project = {}, partition = {}, qos = {}, state = {};
  std::string manager = {};  ///< "slurm", "lsf", "openpbs", "k8s", "openstack" or "local"
  Number nodes = {}, cpus = {}, gpus = {};
  Number elapsed = {}, limit = {}, waited = {};
  /// "4711_3" or "4720+1", as SLURM shows the ID; empty: neither a task of an array nor a part of a
  /// heterogeneous job.
  std::string array = {};
};

struct Use {
  Number cpu = {};
  Number mem = {};  ///< mean share of the allocation; only where the peak is not known
  Number mem_peak_node = {}, mem_alloc_node = {};
  Number gpu_busy = {}, gpu_sm = {}, gpu_mem = {};
};

struct Energy {
  /// All, the idle power of the reservation, and the part of it that was not used.
  Number kwh = {}, idle_kwh = {}, not_used_kwh = {};
  std::map<std::string, double> domains = {};  ///< "gpu", "package", "dram", "other"
  std::string method = {};                     ///< "measured", "derived", "modelled" or empty
};

struct Emissions {
  Number grams = {};
  std::string provider = {};
};

/// What a run cost, by the prices of the site.
struct Cost {
  Number amount = {};
  std::string currency = {};  ///< "EUR"
};

/// A family of runs: the same job, by the same user (family.h).
struct Compared {
  std::size_t runs = 0;  ///< earlier ones and this one
  Number median_kwh = {};
  Number cpu_low = {}, cpu_high = {}, mem_median = {}, gpu_low = {}, gpu_high = {};
  Number project_month_share = {};
};

/// A region of the program that the job has marked (docs/marks.md). Each node counts from its own
/// begin of it to its own end.
struct Phase {
  std::string region = {};
  Number count = {};         ///< how often it ended
  Number nodes = {};         ///< that were in it
  Number seconds = {};       ///< on the node that took longest
  Number share = {};         ///< of the run
  Number kwh = {};           ///< with the regions within it
  Number self_kwh = {};      ///< without them: these add up, with what is outside of all regions
  Number watts = {};         ///< mean of a node
  std::string slowest = {};  ///< the node that took longest, of several
  Number longer = {};        ///< than the mean of the nodes, as a share
};

/// What a result took in an earlier run of the job.
struct EarlierResult {
  std::string uuid = {};
  std::int64_t started_ms = 0;
  Number joules = {};  ///< of the whole job, for each
};

/// What the job has produced, by its own count.
struct JobResult {
  std::string result = {}, unit = {};
  Number n = {};
  Number joules = {};                      ///< of the whole job, for each
  Number family_joules = {};               ///< the median of the earlier runs
  std::vector<EarlierResult> family = {};  ///< the newest first
};

/// A figure of merit.
struct Merit {
  std::string fom = {}, unit = {};
  Number last = {}, mean = {};
};

enum class State : std::uint8_t {
  kSoFar,    ///< the job still runs
  kPartial,  ///< less than advice::kCoverage is known, or the coverage is unknown
  kFinal,
};
std::string_view to_string(State state);

/// A report of one run of a job. A new member also goes into members.h. It is made once and printed
/// in several forms, all of which show the same digits (round_report()).
struct Report {
  std::string cluster_id = {}, uuid = {};
  std::int64_t started_ms = 0, ended_ms = 0;  ///< 0: not yet
  std::string started_text = {};              ///< local time, as the database has it
  State state = State::kPartial;
  Number coverage = {};
  Job job = {};
  Use use = {};
  std::vector<NodeUse> nodes = {};
  Energy energy = {};
  Emissions co2 = {};
  Cost cost = {};
  Compared compared = {};
  std::vector<Phase> phases = {};
  std::vector<JobResult> results = {};
  std::vector<Merit> merits = {};
  std::vector<advice::Finding> findings = {};
  bool from_jobstats = false;  ///< what the nodes did is not measured by us, but read from JS1
};

/// Rounds all numbers to the digits that are shown: shares to whole percent, energy and emissions
/// to three significant digits, money to two decimals, memory to 0.1 of its unit, times to seconds.
void round_report(Report& report);

/// Removes what support may not see of other people: the name, the QOS, which comes from tags,
/// command lines, and marks, whose names people write. Partition and array are in lists, too.
void withhold_written(Report& report);

/// How a report is shown.
struct View {
  std::string_view language = "en";
  std::size_t width = 80;     ///< columns of texts, from 60 to 240
  bool ascii = false;         ///< no other characters, for terminals without UTF-8
  bool all_findings = false;  ///< more than three
  std::string help_url = {};
};

/// One object, as docs/api/endpoints.md describes it.
std::string to_json(const Report& report, const View& view);
std::string to_text(const Report& report, const View& view);
std::string to_markdown(const Report& report, const View& view);
/// A page of its own, without scripts and without anything from elsewhere; `html_policy()` is its
/// Content-Security-Policy, which the page also names itself.
std::string to_html(const Report& report, const View& view);
std::string html_policy();

/// The JSON of jobstats: what each node and GPU used. Values that are not known are left out.
std::string to_js1_json(const Report& report);
/// The same as jobstats keeps it: base64 of its gzip, "Short" for runs of less than a minute,
/// "None" without measurements.
std::string to_js1(const Report& report);

/// What jobstats kept of a job.
struct Js1 {
  std::vector<NodeUse> nodes = {};
  Number elapsed = {}, gpus = {};
};
inline constexpr std::size_t kMaxJs1 = std::size_t{256} << 10U;  ///< bytes of a text

/// Parses the text of an AdminComment, with or without "JS1:" in front. kNoData for "Short" and
/// "None", kParse for anything else that is not such a text or holds more than 20,000 nodes, 256
/// GPUs in one of them, or 4 MiB. Members that are not known are skipped.
Result<Js1> parse_js1(std::string_view text);
/// The same for its JSON.
Result<Js1> parse_js1_json(std::string_view text);

/// Two reports side by side, as text: each row with both values and the change.
std::string compare_text(const Report& a, const Report& b, const View& view);

}  // namespace ceems::report
