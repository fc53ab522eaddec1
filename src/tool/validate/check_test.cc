#include "tool/validate/check.h"

#include <array>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "crypto/signature.h"
#include "host/read_file.h"
#include "tool/validate/simulated_node.h"

namespace ceems::tool::validate {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Record record_of_simulation(double compute = 1.10) {
  SimulatedNode node;
  node.charged[LoadClass::kCompute] = compute;
  return simulated_record(node).value();
}

std::string signed_file(Record record,
                        const std::string& key = crypto::make_signing_key().value()) {
  return file_text(sign_record(std::move(record), key).value());
}

std::string check_error(const std::string& text) {
  const auto checked = check_record(text);
  return checked ? "" : checked.error().message;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(CheckRecord, ReadsWhatWasWritten) {
  const Record record = record_of_simulation();
  const std::string key = crypto::make_signing_key().value();
  const std::string text = signed_file(record, key);
  const auto checked = check_record(text);
  ASSERT_TRUE(checked) << checked.error().message;
  EXPECT_EQ(checked->file.public_key, crypto::public_key_of(key).value());
  EXPECT_EQ(checked->file.record.meter_model, "a \"stand-in\" <meter>");
  EXPECT_EQ(checked->shortcomings, std::vector<std::string>());
  EXPECT_EQ(file_text(checked->file), text);
  // Blanks do not count, as a formatter of JSON puts them.
  EXPECT_EQ(check_error(replaced(text, "\"windows\":", "\"windows\" :\n  ")), "");
  const auto& errors = checked->file.record.errors;
  ASSERT_EQ(errors.size(), 6U);
  EXPECT_EQ(errors[1].name, "compute");
  EXPECT_EQ(errors[1].runs, 3);
  EXPECT_NEAR(errors[1].bias, 10, 1);
  EXPECT_EQ(errors[3].name, "memory-bound");
  EXPECT_NEAR(errors[3].bias, -5, 1);
  EXPECT_NEAR(errors[3].error, 5, 1);
  EXPECT_EQ(errors[5].name, "all");
  EXPECT_EQ(errors[5].runs, 10);
}

TEST(CheckRecord, ShowsALargeError) {
  const auto checked = check_record(signed_file(record_of_simulation(1.4))).value();
  const std::string text = summary_text(checked);
  EXPECT_THAT(text,
              ::testing::ContainsRegex(
                  "compute +3 runs  bias +\\+(39|40)\\.[0-9] %  mean error +(39|40)\\.[0-9] %  "
                  "LARGE: do not rely on this class"));
  EXPECT_THAT(text, Not(::testing::ContainsRegex("scalar[^\n]*LARGE")));
  EXPECT_THAT(report_text(checked),
              ::testing::ContainsRegex("\\| compute \\| 3 \\| \\+(39|40)\\.[0-9] \\| "
                                       "(39|40)\\.[0-9], large \\|"));
}

TEST(CheckRecord, NoticesChanges) {
  const std::string text = signed_file(record_of_simulation());
  const std::string changed =
      "the signature does not fit: the file was changed after it was written";
  EXPECT_EQ(check_error(replaced(text, "Simulated CPU", "Simulated GPU")), changed);
  EXPECT_EQ(check_error(replaced(text, "\"bias_percent\":", "\"bias_percent\":1")), changed);
  EXPECT_EQ(check_error(replaced(text, "\"node_watts\":2", "\"node_watts\":3")), changed);
  const SignedRecord other =
      sign_record(record_of_simulation(), crypto::make_signing_key().value()).value();
  SignedRecord mixed = parse_record(text).value();
  mixed.public_key = other.public_key;
  EXPECT_EQ(check_error(file_text(mixed)), changed);
}

TEST(CheckRecord, ComputesTheErrorsAgain) {
  // Signed by its writer, but with errors that its minutes do not give.
  const std::string key = crypto::make_signing_key().value();
  SignedRecord file = sign_record(record_of_simulation(1.4), key).value();
  for (ClassError& error : file.record.errors) {
    error.bias = 0.5;
    error.error = 0.5;
  }
  file.signature = crypto::sign(key, canonical_text(file.record)).value();
  EXPECT_THAT(check_error(file_text(file)),
              HasSubstr("the file says +0.5 %, mean error 0.5 % for 10 runs of 'idle'; its minutes "
                        "give"));
  file.record.errors.pop_back();
  file.signature = crypto::sign(key, canonical_text(file.record)).value();
  EXPECT_EQ(check_error(file_text(file)), "expected errors of 6 classes, the file has 5");
}

TEST(CheckRecord, NamesWhatIsNotOfTheForm) {
  const std::string text = signed_file(record_of_simulation());
  for (const auto& [from, to, error] : std::vector<std::array<std::string_view, 3>>{
           {"{", "[", "not JSON"},
           {"validation/1", "validation/2", "format: expected ceems-energy-validation/1"},
           {"\"date\"", "\"host\"", "date: expected a text of at most 200 printable characters"},
           {"\"kernel\":", "\"owner\":\"x\",\"kernel\":", "node.owner: expected no such member"},
           {"\"cores\":32", "\"cores\":0", "node.cores: expected a whole number from 1 to 1048576"},
           {"\"cores\":32", "\"cores\":\"32\"", "node.cores: expected a whole number"},
           {"\"independent\":true", "\"independent\":1", "independent: expected true or false"},
           {"Simulated CPU", "\\u001b[2J", "node.cpu: expected a text"},
           {"\"load\":\"scalar\"", "\"load\":\"idle\"",
            "windows[1].parts[0].load: expected compute, scalar or memory-bound"},
           {"\"seconds\":20", "\"seconds\":-20", "windows[0].steps[0].seconds: expected a number"},
           {"\"seconds\":20", "\"seconds\":1e999", ""},
           {"\"charged_watts\":[]", "\"charged_watts\":[5]",
            "windows[0].steps[0].charged_watts: expected 0 numbers, one for each part"},
           {"\"Ed25519\"", "\"none\"", "signature.algorithm: expected Ed25519"},
           {"\"public_key\":\"", "\"public_key\":\"!", "signature.public_key: expected base64"},
           {"\"parts\":[]", "\"parts\":[{\"load\":\"scalar\",\"cpus\":1}]",
            "windows[0].steps[0].charged_watts: expected 1 numbers"}}) {
    EXPECT_THAT(check_error(replaced(text, from, to)), HasSubstr(std::string(error)))
        << from << " -> " << to;
    EXPECT_NE(check_error(replaced(text, from, to)), "") << from << " -> " << to;
  }
  Record turned = record_of_simulation();
  turned.windows.pop_back();
  SignedRecord file{.record = turned, .public_key = std::string(32, 'k'), .signature = "s"};
  EXPECT_EQ(
      check_error(file_text(file)),
      "windows: expected idle times and loads by turns, beginning and ending with an idle time");
  for (std::size_t i = 0; i < text.size(); i += 97) {
    EXPECT_NE(check_error(text.substr(0, i)), "") << i;
  }
}

TEST(CheckRecord, SaysWhatIsNoEvidence) {
  const auto notes = [](const std::function<void(Record&)>& change) {
    Record record = record_of_simulation();
    change(record);
    return fmt::format("{}", fmt::join(shortcomings_of(record), "|"));
  };
  EXPECT_EQ(notes([](Record&) {}), "");
  EXPECT_EQ(notes([](Record& record) { record.node.virtual_machine = true; }),
            "the machine is virtual, so no meter shows its power");
  EXPECT_THAT(notes([](Record& record) { record.independent = false; }),
              HasSubstr("the exporter reads the same meter"));
  EXPECT_EQ(notes([](Record& record) { record.windows[3].steps[0].seconds = 12; }),
            "a load ran for 12 s only: 30 s or more are needed");
  EXPECT_EQ(notes([](Record& record) { record.windows[2].steps[0].others_busy = 0.25; }),
            "other processes used up to 25 % of the CPU time");
  EXPECT_THAT(notes([](Record& record) { record.windows[2].steps[0].distinct = 2; }),
              HasSubstr("the meter showed only 2 different readings"));
}

TEST(Outcomes, RefusesANodeThatDrewMoreWhenIdle) {
  Record record = record_of_simulation();
  record.windows[1].steps[0].wall_watts = 50;
  EXPECT_THAT(outcomes_of(record).error().message,
              HasSubstr("scalar, 1 CPU: the node drew 150.0 W more when it was idle"));
}

TEST(Outcomes, TellTheSplitFromTheMeters) {
  SimulatedNode node;
  node.exporter_factor = 0.8;  // its meters do not see fans and losses
  for (auto& [load, factor] : node.charged) {
    factor = 0.8;
  }
  const auto outcomes = outcomes_of(simulated_record(node).value()).value();
  for (const Outcome& outcome : outcomes) {
    EXPECT_NEAR(outcome.percent(), -20, 1) << outcome.name;
    EXPECT_NEAR(outcome.share_percent(), 0, 1) << outcome.name;
  }
}

/// What the repository holds must be real: valid files that are evidence.
TEST(Results, OfTheRepositoryAreEvidence) {
  const std::string directory = CEEMS_TEST_ROOT "/../data/validation";
  int schemas = 0;
  const auto names = host::list_directory(directory).value();
  for (const std::string& name : names) {
    if (name == "schema.json") {
      ++schemas;
    } else if (name.ends_with(".json")) {
      const auto checked = check_record(host::read_file(directory + "/" + name).value());
      ASSERT_TRUE(checked) << name << ": " << checked.error().message;
      EXPECT_EQ(checked->shortcomings, std::vector<std::string>()) << name;
    }
  }
  EXPECT_EQ(schemas, 1);
}

}  // namespace
}  // namespace ceems::tool::validate
