#include "exporter/run/job_file.h"

#include <algorithm>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace ceems::exporter::run {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Outcome {
  std::vector<std::string> lines;
  Result<> result;
};

class JobFile : public ::testing::Test {
 protected:
  [[nodiscard]] Outcome read() const {
    Outcome outcome;
    outcome.result = read_job_file(
        directory_, "n1.cjf", [&](std::string_view line) { outcome.lines.emplace_back(line); });
    return outcome;
  }
  [[nodiscard]] std::string bytes() const {
    std::ifstream in(root_.path() / "run/n1.cjf", std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void put(std::string_view bytes) const { root_.write("run/n1.cjf", bytes); }

  testing::TempDir root_;
  DataDirectory directory_ = DataDirectory::create((root_.path() / "run").string()).value();
};

TEST_F(JobFile, ReadsBackWhatWasWritten) {
  auto writer = JobFileWriter::create(directory_, "n1.cjf", R"({"job":"1"})").value();
  EXPECT_TRUE(writer.append(""));
  EXPECT_EQ(writer.bytes(), 0U);
  EXPECT_TRUE(writer.append("a 1 1\nb 2 1\n"));
  EXPECT_TRUE(writer.append("a 3 2\n"));
  const Outcome outcome = read();
  EXPECT_TRUE(outcome.result);
  const std::string header = R"(#ceems-jobfile 1 {"job":"1"})";
  EXPECT_THAT(outcome.lines, ElementsAre(header, "a 1 1", "b 2 1", header, "a 3 2"));
  EXPECT_EQ(bytes().size(), writer.bytes());
  EXPECT_FALSE(JobFileWriter::create(directory_, "n1.cjf", "{}"));
}

TEST_F(JobFile, CutsLongTextsAtLineEnds) {
  std::string text;
  for (int i = 0; text.size() < 3 * JobFileWriter::kMaxFrame; ++i) {
    text += fmt::format("series{{i=\"{}\"}} {} {}\n", i, i * 7919, i);
  }
  auto writer = JobFileWriter::create(directory_, "n1.cjf", "{}").value();
  EXPECT_TRUE(writer.append(text));
  std::string again;
  std::size_t headers = 0;
  for (const std::string& line : read().lines) {
    if (line.starts_with(kJobFileMark)) {
      ++headers;
    } else {
      again += line + "\n";
    }
  }
  EXPECT_TRUE(again == text);
  EXPECT_EQ(headers, 4U);
}

// Killed at any byte, the file can be read up to its last frame, and what is read is true.
TEST_F(JobFile, IsReadUpToWhereItEnds) {
  auto writer = JobFileWriter::create(directory_, "n1.cjf", "{}").value();
  std::vector<std::uint64_t> ends;
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(writer.append(fmt::format("a {} 1\nb {} 1\n", i, i)));
    ends.push_back(writer.bytes());
  }
  const std::string all = bytes();
  const Outcome whole = read();
  ASSERT_EQ(whole.lines.size(), 12U);
  for (std::size_t size = 0; size <= all.size(); ++size) {
    put(all.substr(0, size));
    const Outcome outcome = read();
    EXPECT_TRUE(outcome.result) << size;
    const auto frames = static_cast<std::size_t>(
        std::ranges::count_if(ends, [&](auto end) { return end <= size; }));
    ASSERT_GE(outcome.lines.size(), 3 * frames) << size;
    for (std::size_t i = 0; i < outcome.lines.size(); ++i) {
      EXPECT_EQ(outcome.lines[i], whole.lines[i]) << size;
    }
  }
}

TEST_F(JobFile, JoinedFilesAreAFile) {
  auto writer = JobFileWriter::create(directory_, "n1.cjf", "{}").value();
  EXPECT_TRUE(writer.append("a 1 1\n"));
  put(bytes() + bytes());
  EXPECT_EQ(read().lines.size(), 4U);
}

TEST_F(JobFile, DamagedOnesEndWithAnError) {
  auto writer = JobFileWriter::create(directory_, "n1.cjf", "{}").value();
  EXPECT_TRUE(writer.append("a 1 1\nb 2 1\n"));
  EXPECT_TRUE(writer.append("a 3 2\nb 4 2\n"));
  const std::string all = bytes();
  std::minstd_rand random(7);
  std::size_t refused = 0;
  for (int i = 0; i < 500; ++i) {
    std::string damaged = all;
    const std::size_t place = random() % damaged.size();
    damaged[place] = static_cast<char>(static_cast<unsigned char>(damaged[place]) + 1 + i % 255);
    put(damaged);
    refused += read().result ? 0U : 1U;
  }
  EXPECT_GT(refused, 250U);
  put("#ceems-jobfile 1 {}\na 1 1\n");
  EXPECT_FALSE(read().result);
  put("");
  EXPECT_TRUE(read().result);
  EXPECT_THAT(read().lines, IsEmpty());
}

// A frame of a few bytes can stand for gigabytes of one line.
TEST_F(JobFile, LongLinesTakeNoMemory) {
  auto writer = JobFileWriter::create(directory_, "n1.cjf", "{}").value();
  EXPECT_TRUE(writer.append(std::string(4 * JobFileWriter::kMaxFrame, 'x') + "\n"));
  EXPECT_TRUE(writer.append("a 1 1\n"));
  for (const std::string& line : read().lines) {
    EXPECT_LE(line.size(), 65'536U);
  }
  EXPECT_EQ(read().lines.back(), "a 1 1");
}

}  // namespace
}  // namespace ceems::exporter::run
