#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>

#include <gtest/gtest.h>

#include "base/fd.h"
#include "exporter/doctor/doctor.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

/// A socket at which an exporter gives one answer; without one, it does not answer.
class AnsweringSocket {
 public:
  AnsweringSocket(const std::string& path, std::string_view answer, int type = SOCK_SEQPACKET)
      : listener_(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0)) {
    if (!listener_.valid()) {
      ADD_FAILURE() << "no socket";
      return;
    }
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
              0);
    EXPECT_EQ(::chmod(path.c_str(), 0666), 0);
    EXPECT_EQ(::listen(listener_.get(), 4), 0);
    if (!answer.empty()) {
      thread_ = std::jthread([this, answer = std::string(answer)] {
        const UniqueFd caller(::accept(listener_.get(), nullptr, nullptr));
        if (!caller.valid()) {
          ADD_FAILURE() << "no caller";
          return;
        }
        EXPECT_EQ(::send(caller.get(), answer.data(), answer.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(answer.size()));
        char end = 0;
        EXPECT_EQ(::recv(caller.get(), &end, 1, 0), 0);  // no mark
      });
    }
  }

 private:
  UniqueFd listener_;
  std::jthread thread_;
};

class DoctorMarks : public ::testing::Test {
 protected:
  DoctorMarks() {
    context_.marks_socket = path_;
    context_.wanted = {"marks"};
  }

  /// "STATE: CAUSE -> FIX"
  std::string found() {
    Findings findings;
    examine_marks(context_, findings);
    EXPECT_EQ(findings.size(), 1U);
    const Finding& finding = findings.front();
    std::string text = std::string(to_string(finding.state)) + ": " + finding.cause;
    for (std::size_t at = 0; (at = text.find(path_, at)) != std::string::npos;) {
      text.replace(at, path_.size(), "SOCKET");
    }
    return finding.fix.empty() ? text : text + " -> " + finding.fix;
  }
  std::string found_with(std::string_view answer) {
    const AnsweringSocket socket(path_, answer);
    std::string text = found();
    std::filesystem::remove(path_);
    return text;
  }

  testing::TempDir dir_;
  std::string path_ = (dir_.path() / "mark.sock").string();
  DoctorContext context_;
};

TEST_F(DoctorMarks, SaysWhatTheExporterAnswersToThisProcess) {
  EXPECT_EQ(found_with("ok"), "works: an exporter takes marks at SOCKET, of this process as well");
  EXPECT_EQ(found_with("refused no_unit"),
            "works: an exporter answers at SOCKET, and refuses marks of this process as it should: "
            "it is in no job");
  EXPECT_EQ(found_with("refused other_user"),
            "works: an exporter answers at SOCKET, and refuses marks of this process as it should: "
            "its job belongs to another user");
  EXPECT_EQ(found_with("refused gone"),
            "cannot: the exporter at SOCKET cannot see this process -> run the exporter in the PID "
            "namespace of the host (in a pod, hostPID: true), with a /proc that is mounted without "
            "hidepid");
  EXPECT_EQ(found_with("refused rate").substr(0, 71),
            "cannot: the exporter at SOCKET has reached a limit: refused rate -> cee");
  EXPECT_EQ(found_with(""),
            "cannot: the exporter at SOCKET does not answer -> look for \"marks\" in its log, and "
            "restart it");
}

TEST_F(DoctorMarks, AreTakenOfOthersOnlyWithTheModeOfTheExporter) {
  const AnsweringSocket socket(path_, "ok");
  ASSERT_EQ(::chmod(path_.c_str(), 0660), 0);
  const std::string text = found();
  EXPECT_TRUE(text.starts_with(
      "cannot: only some users can connect to SOCKET, whose mode is 0660 -> chmod 0666 /"))
      << text;
}

TEST_F(DoctorMarks, AreOffUnlessRequestedOrTaken) {
  context_.wanted.clear();
  EXPECT_EQ(found(), "off: not requested");
  EXPECT_EQ(found_with("ok"), "works: an exporter takes marks at SOCKET, of this process as well");
  {
    const AnsweringSocket ended(path_, "");
  }
  EXPECT_EQ(found(), "off: SOCKET was left behind by an exporter that has ended");
  context_.marks_socket = "mark.sock";
  EXPECT_EQ(found(), "off: 'mark.sock' cannot be a socket");
}

TEST_F(DoctorMarks, HaveAPlace) {
  EXPECT_EQ(found(), "works: the exporter makes SOCKET when it starts");
  {
    const AnsweringSocket ended(path_, "");
  }
  EXPECT_EQ(found(),
            "works: SOCKET was left behind by an exporter that has ended; the next one replaces "
            "it");
  std::filesystem::remove(path_);
  dir_.write("mark.sock", "");
  EXPECT_EQ(found(),
            "cannot: SOCKET is not a socket, and the exporter does not replace it -> remove it, or "
            "give another path with --collector.marks.socket");
  std::filesystem::remove(path_);
  {
    const AnsweringSocket other(path_, "", SOCK_STREAM);
    EXPECT_EQ(found(),
              "cannot: SOCKET is the socket of another program -> give another path with "
              "--collector.marks.socket");
  }
  const std::string folder = (dir_.path() / "ceems").string();
  path_ = context_.marks_socket = folder + "/mark.sock";
  EXPECT_EQ(found(),
            "works: the exporter makes SOCKET and its folder when it starts -> if it does not run "
            "as root: install -d -m 1775 -g ceems " +
                folder);
  path_ = context_.marks_socket = folder + "/a/mark.sock";
  EXPECT_EQ(found(), "cannot: " + folder +
                         " does not exist, so SOCKET cannot be made -> mkdir -p " + folder +
                         "/a, or give another path with --collector.marks.socket");
}

TEST_F(DoctorMarks, NeedTheEnergyOfJobsAndAPathThatASocketCanHave) {
  context_.energy_refused = true;
  EXPECT_EQ(found(),
            "cannot: marks divide the energy of jobs, which --no-collector.energy turns off -> "
            "remove --no-collector.energy");
  context_.energy_refused = false;
  context_.marks_socket = "/" + std::string(107, 'a');
  EXPECT_TRUE(
      found().ends_with("cannot be a socket -> give an absolute path of at most 107 bytes with "
                        "--collector.marks.socket"));
  context_.marks_socket = "/" + std::string(106, 'a');
  EXPECT_EQ(found(), "works: the exporter makes " + context_.marks_socket + " when it starts");
}

}  // namespace
}  // namespace ceems::exporter
