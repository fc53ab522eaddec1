#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/strings.h"
#include "crypto/signature.h"
#include "tool/validate/check.h"

namespace ceems::tool::validate {
namespace {

/// "4 x NVIDIA H100 80GB HBM3".
std::string gpus_of(const NodeKind& node) {
  std::map<std::string, int> counts;
  for (const std::string& gpu : node.gpus) {
    ++counts[gpu];
  }
  std::vector<std::string> parts;
  parts.reserve(counts.size());
  for (const auto& [name, count] : counts) {
    parts.push_back(count > 1 ? fmt::format("{} x {}", count, name) : name);
  }
  return parts.empty() ? "no GPU" : fmt::format("{}", fmt::join(parts, ", "));
}

std::string node_text(const NodeKind& node) {
  return fmt::format("{} ({}), {} socket{}, {} cores, {} CPUs, {:.0f} GiB, {}, Linux {}", node.cpu,
                     node.cpu_family, node.sockets, node.sockets == 1 ? "" : "s", node.cores,
                     node.cpus, node.memory_gib, gpus_of(node), node.kernel);
}

/// "node: ipmi_dcmi (measured); package: rapl (measured)".
std::string sources_text(const std::vector<EnergySource>& sources) {
  std::vector<std::string> parts;
  parts.reserve(sources.size());
  for (const EnergySource& source : sources) {
    parts.push_back(fmt::format("{}: {} ({})", source.domain, source.kind, source.method));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string meter_text(const Record& record) {
  return record.meter_model.empty() ? record.meter
                                    : fmt::format("{}, {}", record.meter, record.meter_model);
}

bool is_large(const ClassError& error) {
  return error.error >= kLargeError;
}

std::string share_cell(const ClassError& error) {
  return error.name == to_string(LoadClass::kIdle) ? "" : fmt::format("{:.1f}", error.share_error);
}

void add_class_table(const Record& record, std::string& out) {
  out +=
      "## By class of load\n\n"
      "| Class | Runs | Bias, % | Mean error, % | Mean error of the share, % |\n"
      "|---|---|---|---|---|\n";
  for (const ClassError& error : record.errors) {
    out +=
        fmt::format("| {} | {} | {:+.1f} | {:.1f}{} | {} |\n", error.name, error.runs, error.bias,
                    error.error, is_large(error) ? ", large" : "", share_cell(error));
  }
  out +=
      "\nA load is due the idle power at the meter times its part of the CPUs, and the power that "
      "it "
      "adds there. The error of\nthe share compares with the same part of what the exporter's own "
      "meters see: it tells a wrong split from meters that see\ntoo little. `idle` compares the "
      "exporter's power of the node with the meter.\n\n";
}

void add_load_table(const std::vector<Outcome>& outcomes, std::string& out) {
  out +=
      "## Every load\n\n"
      "| Load | Added at the meter, W | Due, W | Charged, W | Error, % |\n|---|---|---|---|---|\n";
  for (const Outcome& outcome : outcomes) {
    const std::string added =
        outcome.load == LoadClass::kIdle
            ? std::string()
            : fmt::format("{:.1f} ± {:.1f}", outcome.added, outcome.uncertainty);
    out += fmt::format("| {} | {} | {:.1f} | {:.1f} | {:+.1f} |\n", outcome.name, added,
                       outcome.due, outcome.charged, outcome.percent());
  }
  out += '\n';
}

/// The two readings that --collector.energy.model-watts takes, if the full load was measured.
void add_model_watts(const CheckedRecord& checked, std::string& out) {
  const Record& record = checked.file.record;
  double idle = 0;
  int count = 0;
  for (const Outcome& outcome : checked.outcomes) {
    if (outcome.load == LoadClass::kIdle) {
      idle += outcome.due;
      ++count;
    }
  }
  double full = 0;
  for (const Window& window : record.windows) {
    if (window.parts.size() == 1 && window.parts.front().cpus == record.node.cpus) {
      for (const Step& step : window.steps) {
        full = std::max(full, step.wall_watts);
      }
    }
  }
  if (full > 0) {
    out += fmt::format(
        "For nodes of this kind without a meter: "
        "`--collector.energy.model-watts=idle={:.0f},full={:.0f}`.\n\n",
        idle / count, full);
  }
}

}  // namespace

std::string summary_text(const CheckedRecord& checked) {
  const Record& record = checked.file.record;
  std::string out = fmt::format(
      "node      {}\nexporter  {}, {}\nmeter     {}, {}\n", node_text(record.node),
      record.exporter_version, sources_text(record.sources), meter_text(record),
      record.independent ? "independent of the exporter's" : "which the exporter reads, too");
  out += fmt::format("key       {}\n", crypto::fingerprint(checked.file.public_key));
  for (const ClassError& error : record.errors) {
    out += fmt::format("{:<14} {:>3} runs  bias {:>+7.1f} %  mean error {:>6.1f} %{}\n", error.name,
                       error.runs, error.bias, error.error,
                       is_large(error) ? "  LARGE: do not rely on this class" : "");
  }
  for (const std::string& shortcoming : checked.shortcomings) {
    out += fmt::format("note: not evidence for other nodes: {}\n", shortcoming);
  }
  return out;
}

std::string report_text(const CheckedRecord& checked) {
  const Record& record = checked.file.record;
  std::string out = fmt::format(
      "# Energy of loads against a meter\n\n{}. {}. ceems_exporter {}, with {}. Meter: {}, {}.\n\n",
      record.date, node_text(record.node), record.exporter_version, sources_text(record.sources),
      meter_text(record),
      record.independent ? "independent of the exporter's meters"
                         : "which the exporter reads, too");
  if (!record.errors.empty()) {
    out += fmt::format("The mean error of the energy charged to a load is **{:.1f} %**.\n\n",
                       record.errors.back().error);
  }
  add_class_table(record, out);
  add_load_table(checked.outcomes, out);
  add_model_watts(checked, out);
  for (const std::string& shortcoming : checked.shortcomings) {
    out += fmt::format("This result is not evidence for other nodes: {}.\n\n", shortcoming);
  }
  out.pop_back();
  return out;
}

}  // namespace ceems::tool::validate
