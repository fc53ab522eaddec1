#include "net/client/tls_files.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace ceems::net {
namespace {

TEST(TlsFiles, AreReadAgainWhenTheyHaveChanged) {
  const testing::TempDir dir;
  TlsOptions options;
  options.ca_file = dir.write("ca.pem", "old authority\n").string();
  options.cert = "given";
  options.server_name = "n";
  TlsFiles files(options);

  const auto first = files.read();
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ((*first)->ca, "old authority");
  EXPECT_EQ((*first)->ca_file, "");
  EXPECT_EQ((*first)->cert, "given");
  EXPECT_EQ((*first)->server_name, "n");
  EXPECT_EQ(*files.read(), *first) << "nothing has changed";

  dir.write("ca.pem", "new one\n");
  const auto second = files.read();
  ASSERT_TRUE(second);
  EXPECT_EQ((*second)->ca, "new one");
  EXPECT_EQ((*first)->ca, "old authority") << "requests under way keep theirs";

  std::filesystem::remove(options.ca_file);
  const auto gone = files.read();
  ASSERT_FALSE(gone) << "not the old texts";
  EXPECT_EQ(gone.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(gone.error().message,
            "TLS file: open " + options.ca_file + ": No such file or directory");

  dir.write("ca.pem", "third\n");
  ASSERT_TRUE(files.read());
  EXPECT_EQ((*files.read())->ca, "third");
}

TEST(TlsFiles, WithoutTextAreRefused) {
  const testing::TempDir dir;
  TlsOptions options;  // without a CA, the system's would be trusted
  options.ca_file = dir.write("ca.pem", "\n").string();
  const auto empty = TlsFiles(options).read();
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(empty.error().message, "TLS file: " + options.ca_file + " is empty");
}

}  // namespace
}  // namespace ceems::net
