#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::tool::validate {

/// Kinds of loads. kIdle is a node without loads, kMixed two loads at the same time.
enum class LoadClass { kIdle, kCompute, kScalar, kMemory, kMixed };
inline constexpr std::size_t kLoadClasses = 5;
/// "idle", "compute", "scalar", "memory-bound", "mixed".
std::string_view to_string(LoadClass load);

/// One unit of a window.
struct Part {
  LoadClass load = LoadClass::kCompute;  ///< compute, scalar or memory-bound
  int cpus = 1;                          ///< logical CPUs that it keeps busy

  bool operator==(const Part&) const = default;
};

/// About a minute of a window: the raw numbers that all errors are computed from. Powers are means
/// in watts.
struct Step {
  double seconds = 0;
  double wall_watts = 0;      ///< by the reference meter
  double wall_deviation = 0;  ///< standard deviation of its readings
  int readings = 0;           ///< of that meter
  int distinct = 0;       ///< those that differ from the one before; a meter that repeats averages
  double node_watts = 0;  ///< of the node, by the exporter
  std::vector<double> charged_watts;  ///< to each part, by the exporter
  double others_busy = 0;             ///< fraction of all CPU time that other processes used
};

/// A time in which the load did not change. Without parts the node was idle.
struct Window {
  std::vector<Part> parts;
  std::vector<Step> steps;
};

/// A source of the exporter's energy.
struct EnergySource {
  std::string domain;  ///< "node", "package", ...
  std::string kind;    ///< "ipmi_dcmi", "rapl", "power-model": its name without numbers
  std::string method;  ///< "measured", "derived" or "modelled"

  auto operator<=>(const EnergySource&) const = default;
};

/// The description of a node, without anything that names it.
struct NodeKind {
  std::string cpu;         ///< "model name" of /proc/cpuinfo
  std::string cpu_family;  ///< row of data/power-models/cpus.csv
  int sockets = 1;
  int cores = 1;
  int cpus = 1;  ///< logical CPUs online
  double memory_gib = 0;
  bool virtual_machine = false;
  std::vector<std::string> gpus;  ///< model of each GPU
  std::string kernel;             ///< numbers of its release, "6.1.0"
};

/// The error of one class of loads in percent.
struct ClassError {
  std::string name;  ///< of a LoadClass, or "all" for all loads, without the idle node
  int runs = 0;
  double bias = 0;         ///< mean of charged / due - 1
  double error = 0;        ///< mean of its magnitude
  double share_error = 0;  ///< mean magnitude if the node draws what the exporter's meters say

  bool operator==(const ClassError&) const = default;
};

/// A validation of one node.
struct Record {
  std::string date;  ///< "2026-01-31"
  std::string tool_version;
  std::string exporter_version;
  NodeKind node;
  std::string meter;         ///< kind of the reference meter
  std::string meter_model;   ///< in the words of its owner; may be empty
  bool independent = false;  ///< the exporter does not read the reference meter itself
  std::vector<EnergySource> sources;
  double settle_seconds = 0;    ///< left out after each change
  std::vector<Window> windows;  ///< idle and loaded by turns; the first and the last are idle
  std::vector<ClassError> errors;
};

/// A record as it stands in a file.
struct SignedRecord {
  Record record;
  std::string public_key;  ///< 32 bytes
  std::string signature;   ///< 64 bytes, over canonical_text() of the record
};

/// The record as JSON without blanks: the text that is signed. It depends only on the values.
std::string canonical_text(const Record& record);

/// The file: the canonical text with the member "signature", and a line end before each window, so
/// that two files can be compared by lines.
std::string file_text(const SignedRecord& record);

/// Reads a file. Blanks do not matter; unknown members, missing ones, wrong types and values
/// outside their range are kParse, whose message names the member. data/validation/schema.json
/// describes the form. Does not look at the signature.
Result<SignedRecord> parse_record(std::string_view text);

}  // namespace ceems::tool::validate
