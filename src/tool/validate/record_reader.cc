#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include <boost/json.hpp>

#include "base/strings.h"
#include "crypto/base64.h"
#include "tool/validate/record.h"

namespace ceems::tool::validate {
namespace {

namespace json = boost::json;

constexpr std::string_view kFormatName = "ceems-energy-validation/1";
constexpr std::size_t kMaxText = 200;
constexpr std::size_t kMaxWindows = 1000;
constexpr std::size_t kMaxSteps = 1000;
constexpr std::size_t kMaxParts = 2;
constexpr std::size_t kMaxSources = 100;
constexpr std::size_t kMaxGpus = 64;
constexpr double kMaxWatts = 1e6;
constexpr double kMaxPercent = 1e9;
constexpr int kMaxCpus = 1 << 20;

/// Reads the members of one object. The first complaint is kept, and everything after it ignored.
/// `error` is shared by the readers of one document.
class ObjectReader {
 public:
  ObjectReader(const json::value& value, std::string where, std::optional<Error>& error)
      : where_(std::move(where)), error_(error), object_(value.if_object()) {
    if (object_ == nullptr) {
      complain("", "an object");
    }
  }
  ObjectReader(const ObjectReader&) = delete;
  ObjectReader& operator=(const ObjectReader&) = delete;
  ~ObjectReader() {
    for (std::size_t i = 0; object_ != nullptr && i < object_->size(); ++i) {
      const std::string key((object_->begin() + static_cast<std::ptrdiff_t>(i))->key());
      if (!known_.contains(key)) {
        complain(printable(key, 40), "no such member");
      }
    }
  }

  void text(const char* key, std::string& out, std::size_t max = kMaxText) {
    const json::value* value = find(key);
    const json::string* found = value == nullptr ? nullptr : value->if_string();
    if (found == nullptr || found->size() > max || printable(*found, max + 1) != *found) {
      complain(key, fmt::format("a text of at most {} printable characters", max));
      return;
    }
    out.assign(found->begin(), found->end());
  }
  void number(const char* key, double& out, double min, double max) {
    const json::value* value = find(key);
    boost::system::error_code failed;
    const double found =
        value == nullptr || !value->is_number() ? NAN : value->to_number<double>(failed);
    if (!(found >= min && found <= max)) {
      complain(key, fmt::format("a number from {} to {}", min, max));
      return;
    }
    out = found;
  }
  void count(const char* key, int& out, int min, int max) {
    const json::value* value = find(key);
    const std::int64_t* found = value == nullptr ? nullptr : value->if_int64();
    if (found == nullptr || *found < min || *found > max) {
      complain(key, fmt::format("a whole number from {} to {}", min, max));
      return;
    }
    out = static_cast<int>(*found);
  }
  void truth(const char* key, bool& out) {
    const json::value* value = find(key);
    if (value == nullptr || !value->is_bool()) {
      complain(key, "true or false");
      return;
    }
    out = value->get_bool();
  }
  /// Calls read(value) for each element, which returns false if it is not what is expected.
  template <typename Read>
  void list(const char* key, std::size_t max, std::string_view expected, const Read& read) {
    each(key, max, [&](const json::value& value, const std::string& place) {
      if (!read(value)) {
        complain(place, expected);
      }
    });
  }
  /// Reads a list of objects with read(reader, object).
  template <typename Object, typename Read>
  void objects(const char* key, std::size_t max, std::vector<Object>& out, const Read& read) {
    each(key, max, [&](const json::value& value, const std::string& place) {
      ObjectReader reader(value, where_ + place + ".", error_);
      read(reader, out.emplace_back());
    });
  }
  /// Calls read(reader) with the reader of a member that is an object.
  template <typename Read>
  void object(const char* key, const Read& read) {
    const json::value* value = find(key);
    if (value == nullptr) {
      complain(key, "an object");
      return;
    }
    ObjectReader reader(*value, where_ + key + ".", error_);
    read(reader);
  }
  /// A text of base64.
  void bytes(const char* key, std::string& out) {
    std::string encoded;
    text(key, encoded);
    if (auto decoded = crypto::base64_decode(encoded)) {
      out = std::move(*decoded);
    } else {
      complain(key, "base64");
    }
  }
  void complain(std::string_view key, std::string_view expected) {
    if (!error_) {
      error_ = Error{ErrorCode::kParse, fmt::format("{}{}: expected {}", where_, key, expected)};
    }
  }

 private:
  template <typename Read>
  void each(const char* key, std::size_t max, const Read& read) {
    const json::value* value = find(key);
    const json::array* found = value == nullptr ? nullptr : value->if_array();
    if (found == nullptr || found->size() > max) {
      complain(key, fmt::format("a list of at most {}", max));
      return;
    }
    for (std::size_t i = 0; i < found->size() && !error_; ++i) {
      read((*found)[i], fmt::format("{}[{}]", key, i));
    }
  }
  const json::value* find(const char* key) {
    known_.insert(key);
    return object_ == nullptr ? nullptr : object_->if_contains(key);
  }

  std::string where_;
  std::optional<Error>& error_;
  const json::object* object_;
  std::set<std::string, std::less<>> known_;
};

void read_node(ObjectReader& in, NodeKind& node) {
  in.text("cpu", node.cpu);
  in.text("cpu_family", node.cpu_family);
  in.count("sockets", node.sockets, 1, kMaxCpus);
  in.count("cores", node.cores, 1, kMaxCpus);
  in.count("cpus", node.cpus, 1, kMaxCpus);
  in.number("memory_gib", node.memory_gib, 0, 1e6);
  in.truth("virtual_machine", node.virtual_machine);
  in.list("gpus", kMaxGpus, "the model of a GPU", [&](const json::value& value) {
    const json::string* name = value.if_string();
    if (name == nullptr || name->size() > kMaxText || printable(*name, kMaxText + 1) != *name) {
      return false;
    }
    node.gpus.emplace_back(*name);
    return true;
  });
  in.text("kernel", node.kernel);
}

void read_part(ObjectReader& in, Part& part) {
  std::string load;
  in.text("load", load);
  in.count("cpus", part.cpus, 1, kMaxCpus);
  for (const LoadClass known : {LoadClass::kCompute, LoadClass::kScalar, LoadClass::kMemory}) {
    if (load == to_string(known)) {
      part.load = known;
      return;
    }
  }
  in.complain("load", "compute, scalar or memory-bound");
}

void read_step(ObjectReader& in, Step& step, std::size_t parts) {
  in.number("seconds", step.seconds, 1e-3, 1e5);
  in.number("wall_watts", step.wall_watts, 1e-3, kMaxWatts);
  in.number("wall_deviation", step.wall_deviation, 0, kMaxWatts);
  in.count("readings", step.readings, 1, kMaxCpus);
  in.count("distinct", step.distinct, 1, step.readings);
  in.number("node_watts", step.node_watts, 0, kMaxWatts);
  in.list("charged_watts", kMaxParts, "watts", [&](const json::value& watts) {
    boost::system::error_code failed;
    const double number = watts.is_number() ? watts.to_number<double>(failed) : NAN;
    step.charged_watts.push_back(number);
    return number >= 0 && number <= kMaxWatts;
  });
  in.number("others_busy", step.others_busy, 0, 1);
  if (step.charged_watts.size() != parts) {
    in.complain("charged_watts", fmt::format("{} numbers, one for each part", parts));
  }
}

void read_window(ObjectReader& in, Window& window) {
  in.objects("parts", kMaxParts, window.parts, read_part);
  in.objects("steps", kMaxSteps, window.steps,
             [&](ObjectReader& step, Step& out) { read_step(step, out, window.parts.size()); });
  if (window.steps.empty()) {
    in.complain("steps", "at least one");
  }
}

void read_class_error(ObjectReader& in, ClassError& out) {
  in.text("class", out.name);
  in.count("runs", out.runs, 1, kMaxCpus);
  in.number("bias_percent", out.bias, -kMaxPercent, kMaxPercent);
  in.number("error_percent", out.error, 0, kMaxPercent);
  in.number("share_error_percent", out.share_error, 0, kMaxPercent);
}

void read_source(ObjectReader& in, EnergySource& source) {
  in.text("domain", source.domain);
  in.text("kind", source.kind);
  in.text("method", source.method);
}

/// Loads and idle times take turns, so that each load has an idle time on both sides.
bool takes_turns(const std::vector<Window>& windows) {
  for (std::size_t i = 0; i < windows.size(); ++i) {
    if (windows[i].parts.empty() != (i % 2 == 0)) {
      return false;
    }
  }
  return windows.size() >= 3 && windows.size() % 2 == 1;
}

void read_record(ObjectReader& in, Record& record) {
  std::string format;
  in.text("format", format);
  if (format != kFormatName) {
    in.complain("format", kFormatName);
  }
  in.text("date", record.date);
  in.text("tool_version", record.tool_version);
  in.text("exporter_version", record.exporter_version);
  in.object("node", [&](ObjectReader& node) { read_node(node, record.node); });
  in.text("meter", record.meter);
  in.text("meter_model", record.meter_model);
  in.truth("independent", record.independent);
  in.objects("sources", kMaxSources, record.sources, read_source);
  in.number("settle_seconds", record.settle_seconds, 0, 1e5);
  in.objects("errors", kLoadClasses + 1, record.errors, read_class_error);
  in.objects("windows", kMaxWindows, record.windows, read_window);
  if (!takes_turns(record.windows)) {
    in.complain("windows", "idle times and loads by turns, beginning and ending with an idle time");
  }
}

}  // namespace

Result<SignedRecord> parse_record(std::string_view text) {
  boost::system::error_code failed;
  const json::value document = json::parse(json::string_view(text.data(), text.size()), failed);
  if (failed) {
    return fail(ErrorCode::kParse, "not JSON: {}", failed.message());
  }
  SignedRecord out;
  std::optional<Error> error;
  {
    ObjectReader in(document, "", error);
    read_record(in, out.record);
    in.object("signature", [&](ObjectReader& signature) {
      std::string algorithm;
      signature.text("algorithm", algorithm);
      if (algorithm != "Ed25519") {
        signature.complain("algorithm", "Ed25519");
      }
      signature.bytes("public_key", out.public_key);
      signature.bytes("value", out.signature);
    });
  }
  if (error) {
    return fail(std::move(*error));
  }
  return out;
}

}  // namespace ceems::tool::validate
