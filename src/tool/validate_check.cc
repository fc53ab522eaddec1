#include <fmt/format.h>

#include "base/json.h"
#include "base/strings.h"
#include "crypto/signature.h"
#include "os/file.h"
#include "tool/command.h"
#include "tool/validate/check.h"

namespace ceems::tool {
namespace {

constexpr std::size_t kMaxRecordFile = std::size_t{16} << 20U;

Result<validate::CheckedRecord> check_file(const std::string& path) {
  CEEMS_TRY(text, os::read_regular_file(path, kMaxRecordFile));
  CEEMS_TRY_IN(path, checked, validate::check_record(text));
  return checked;
}

void add_checked(JsonWriter& json, const validate::CheckedRecord& checked) {
  const validate::Record& record = checked.file.record;
  json.member("cpu", record.node.cpu).member("cpu_family", record.node.cpu_family);
  json.member("key", crypto::fingerprint(checked.file.public_key)).key("errors").begin_array();
  for (const validate::ClassError& error : record.errors) {
    json.begin_object().member("class", error.name).member("runs", error.runs);
    json.member("bias_percent", error.bias).member("error_percent", error.error);
    json.member("large", error.error >= validate::kLargeError).end_object();
  }
  json.end_array().key("notes").begin_array();
  for (const std::string& shortcoming : checked.shortcomings) {
    json.value(shortcoming);
  }
  json.end_array();
}

class ValidateCheck final : public Command {
 public:
  [[nodiscard]] std::string_view words() const override { return "validate check"; }
  [[nodiscard]] std::string_view help() const override {
    return "Check result files of 'validate energy': their form, their signatures, and whether "
           "their "
           "errors follow from their minutes. Exit status 1 if one is not valid.";
  }
  void add_flags(config::FlagSet& flags) override {
    flags.positionals("files", files_, "Result files.");
    flags.add("evidence", evidence_,
              {.help = "Also refuse results that are not evidence for other nodes: too short, on a "
                       "busy or virtual machine, or against the exporter's own meter."});
    flags.add("json", json_, {.help = "Print the results as JSON."});
  }
  Result<int> run(Console& console) override {
    if (files_.empty()) {
      return fail(ErrorCode::kInvalidArgument,
                  "required argument 'files' not provided, try --help");
    }
    std::string out;
    JsonWriter json(out, JsonEscape::kPlain);
    json.begin_array();
    bool good = true;
    for (const std::string& path : files_) {
      const auto checked = check_file(path);
      const bool accepted = checked && (!evidence_ || checked->shortcomings.empty());
      good = good && accepted;
      json.begin_object().member("file", path).member("valid", accepted);
      if (checked) {
        add_checked(json, *checked);
      } else {
        json.member("error", checked.error().message);
      }
      json.end_object();
      if (!json_) {
        show(console, path, checked, accepted);
      }
    }
    json.end_array();
    if (json_) {
      console.print(out + "\n");
    }
    return good ? 0 : 1;
  }

 private:
  static void show(Console& console,
                   const std::string& path,
                   const Result<validate::CheckedRecord>& checked,
                   bool accepted) {
    if (!checked) {
      console.print(fmt::format("invalid  {}\n", printable(checked.error().message, 500)));
      return;
    }
    console.print(fmt::format("{}  {}\n{}", accepted ? "valid  " : "refused", printable(path, 500),
                              validate::summary_text(*checked)));
  }

  std::vector<std::string> files_;
  bool evidence_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> validate_check_command() {
  return std::make_unique<ValidateCheck>();
}

}  // namespace ceems::tool
