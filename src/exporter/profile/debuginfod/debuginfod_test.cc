#include "exporter/profile/debuginfod/debuginfod.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/mutex.h"
#include "exporter/profile/symbol/compiled_binary_test_support.h"
#include "exporter/profile/symbol/names/symbols.h"
#include "net/server/server.h"
#include "testing/eventually.h"
#include "testing/fake_clock.h"
#include "testing/temp_dir.h"

// Most options have their defaults.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace ceems::exporter::profile {
namespace {

const std::string kId = "0123456789abcdef0123456789abcdef01234567";

/// Stands in for a debuginfod server: 404 for all but `files`, by path.
class MockDebuginfod {
 public:
  MockDebuginfod() {
    auto server = net::Server::create(
        {.listen_addresses = {"127.0.0.1:0"}},
        [this](const net::Request& request, net::Response& response) {
          const MutexLock lock(mutex_);
          asked_.push_back(request.path);
          const auto found = files_.find(request.path);
          response.status = status_ != 0 ? status_ : (found == files_.end() ? 404 : 200);
          if (response.status == 200) {
            response.body = found->second;
          }
        });
    EXPECT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
    server_->start();
  }
  ~MockDebuginfod() { server_->stop(); }
  MockDebuginfod(const MockDebuginfod&) = delete;
  MockDebuginfod& operator=(const MockDebuginfod&) = delete;

  [[nodiscard]] std::string url() const { return "http://" + server_->addresses()[0]; }
  void add(const std::string& id, std::string content) {
    const MutexLock lock(mutex_);
    files_["/buildid/" + id + "/debuginfo"] = std::move(content);
  }
  void answer_with(int status) {
    const MutexLock lock(mutex_);
    status_ = status;
  }
  std::vector<std::string> asked() {
    const MutexLock lock(mutex_);
    return asked_;
  }

 private:
  Mutex mutex_;
  std::map<std::string, std::string> files_ CEEMS_GUARDED_BY(mutex_);
  std::vector<std::string> asked_ CEEMS_GUARDED_BY(mutex_);
  int status_ CEEMS_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<net::Server> server_;
};

struct DebuginfodTest : ::testing::Test {
  testing::TempDir directory;
  testing::FakeClock clock;
  MockDebuginfod server;

  DebuginfodOptions options() {
    return {.urls = {server.url()}, .directory = (directory.path() / "cache").string()};
  }
  static std::unique_ptr<Debuginfod> make(DebuginfodOptions options, const Clock& clock) {
    auto made = Debuginfod::create(std::move(options), clock);
    EXPECT_TRUE(made) << made.error().message;
    return *std::move(made);
  }
  static void wait_for_file(Debuginfod& source, const std::string& id) {
    EXPECT_TRUE(testing::eventually([&] { return source.find(id).has_value(); }));
  }
  /// Waits for a file that is asked for again after this time. What the last answer said may be
  /// noted only after the clock was moved, so once may not be enough.
  void find_when_time_has_passed(Debuginfod& source,
                                 const std::string& id,
                                 std::chrono::minutes time) {
    EXPECT_TRUE(testing::eventually([&] {
      clock.advance(time);
      return source.find(id).has_value();
    }));
  }
  /// A file can be found a moment before it counts as arrived.
  static std::vector<std::string> arrivals_of(Debuginfod& source, std::size_t count) {
    std::vector<std::string> all;
    EXPECT_TRUE(testing::eventually([&] {
      for (std::string& one : source.arrived()) {
        all.push_back(std::move(one));
      }
      return all.size() >= count;
    }));
    return all;
  }
};

std::string content_of(const std::string& path) {
  std::ostringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  return content.str();
}

TEST_F(DebuginfodTest, FetchesAFileOnceAndKeepsIt) {
  server.add(kId, "the file");
  const auto source = make(options(), clock);
  EXPECT_FALSE(source->find(kId)) << "it does not wait";
  wait_for_file(*source, kId);
  EXPECT_EQ(source->find(kId)->read(0, 8).value(), "the file");
  EXPECT_EQ(arrivals_of(*source, 1), std::vector{kId});
  EXPECT_TRUE(source->arrived().empty());
  const auto later = make(options(), clock);
  EXPECT_TRUE(later->find(kId)) << "kept in the directory";
  EXPECT_EQ(server.asked(), std::vector<std::string>{"/buildid/" + kId + "/debuginfo"});
}

TEST_F(DebuginfodTest, DoesNotAskForWhatIsNoBuildId) {
  const auto source = make(options(), clock);
  for (const std::string id :
       {"", "../../etc/passwd", "0123456789abcde", "0123456789ABCDEF", "0123456789abcdeg"}) {
    EXPECT_FALSE(source->find(id)) << id;
  }
  EXPECT_FALSE(source->find(std::string(129, 'a')));
  server.add(kId, "x");
  wait_for_file(*source, kId);
  EXPECT_EQ(server.asked().size(), 1U);
}

TEST_F(DebuginfodTest, AsksAgainTheNextDayForWhatNoServerHas) {
  const auto source = make(options(), clock);
  const std::string marker(40, 'b');
  server.add(marker, "x");
  EXPECT_FALSE(source->find(kId));
  wait_for_file(*source, marker);  // after the one before
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(source->find(kId));
  }
  clock.advance(std::chrono::hours(25));
  server.add(kId, "now");
  wait_for_file(*source, kId);
  EXPECT_EQ(server.asked().size(), 3U);
}

TEST_F(DebuginfodTest, PausesAfterAServerFailed) {
  server.answer_with(500);
  const auto source = make(options(), clock);
  EXPECT_FALSE(source->find(kId));
  EXPECT_TRUE(testing::eventually([&] { return server.asked().size() == 1; }));
  server.answer_with(0);
  server.add(kId, "x");
  EXPECT_FALSE(source->find(kId));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(server.asked().size(), 1U) << "it waits";
  find_when_time_has_passed(*source, kId, std::chrono::minutes(6));
}

TEST_F(DebuginfodTest, AsksTheNextServer) {
  MockDebuginfod other;
  other.add(kId, "of the other");
  auto both = options();
  both.urls.push_back(other.url());
  const auto source = make(both, clock);
  wait_for_file(*source, kId);
  EXPECT_EQ(source->find(kId)->read(0, 12).value(), "of the other");
  EXPECT_EQ(server.asked().size(), 1U);
}

TEST_F(DebuginfodTest, BoundsSizesAndRequests) {
  auto bounded = options();
  bounded.max_file_bytes = 1000;
  bounded.max_cache_bytes = 1500;
  bounded.requests_per_hour = 4;
  const std::string large(40, '1');
  const std::string first(40, '2');
  const std::string second(40, '3');
  const std::string third(40, '4');
  const std::string fourth(40, '5');
  server.add(large, std::string(1001, 'x'));
  for (const std::string& id : {first, second, third, fourth}) {
    server.add(id, std::string(700, 'x'));
  }
  const auto source = make(bounded, clock);
  EXPECT_FALSE(source->find(large));
  wait_for_file(*source, first);
  EXPECT_FALSE(source->find(large));
  std::filesystem::last_write_time(
      bounded.directory + "/" + first + ".debug",
      std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  wait_for_file(*source, second);
  EXPECT_EQ(arrivals_of(*source, 2), (std::vector{first, second}));
  // The third one would be 2,100 bytes: the one that was unused for longest goes.
  std::filesystem::last_write_time(
      bounded.directory + "/" + first + ".debug",
      std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  wait_for_file(*source, third);
  // Room is made a moment after the file is there.
  EXPECT_TRUE(testing::eventually(
      [&] { return !std::filesystem::exists(bounded.directory + "/" + first + ".debug"); }));
  EXPECT_FALSE(std::filesystem::exists(bounded.directory + "/" + large + ".debug.part"));
  EXPECT_EQ(server.asked().size(), 4U);
  EXPECT_FALSE(source->find(fourth));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(server.asked().size(), 4U) << "four an hour";
  find_when_time_has_passed(*source, fourth, std::chrono::minutes(61));
}

TEST_F(DebuginfodTest, GivesNamesToAStrippedBinary) {
  const std::string path =
      compiled(directory, "gcc", "program.c",
               "__attribute__((noinline)) int hidden(int x) { return x * 3; }\n"
               "int main(int argc, char** argv) { return hidden(argc); }\n",
               {"-O1", "-Wl,--build-id=0x" + kId});
  if (path.empty() || !program("objcopy") || !program("strip")) {
    GTEST_SKIP() << "no gcc or binutils";
  }
  const std::string debug = path + ".debug";
  ASSERT_TRUE(run_tool(directory, *program("objcopy"), {"--only-keep-debug", path, debug}));
  ASSERT_TRUE(run_tool(directory, *program("strip"), {path}));
  const auto names = [&](DebugFileSource* source) {
    auto elf = ElfFile::read(BinaryFile::open(path).value());
    const FileOpener none = [](const std::string& name) -> Result<BinaryFile> {
      return fail(ErrorCode::kNotFound, "{}", name);
    };
    const SymbolTable symbols = read_symbols(*elf, path, none, {}, source);
    bool found = false;
    for (std::uint32_t at = 0x1000; at < 0x2000; ++at) {
      found = found || symbols.find(at) == "hidden";
    }
    return found;
  };
  const auto source = make(options(), clock);
  EXPECT_FALSE(names(nullptr));
  EXPECT_FALSE(names(source.get())) << "asks, and does not wait";
  server.add(kId, content_of(debug));
  find_when_time_has_passed(*source, kId, std::chrono::hours(25));
  EXPECT_TRUE(names(source.get()));
  // A file of another build does not name anything.
  std::ofstream(options().directory + "/" + kId + ".debug", std::ios::binary)
      << content_of("/bin/true");
  EXPECT_FALSE(names(source.get()));
}

}  // namespace
}  // namespace ceems::exporter::profile
