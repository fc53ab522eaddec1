#include "mail/message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "crypto/base64.h"

namespace ceems::mail {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Message, IsMultipart) {
  const std::string text = to_message({.from_name = "CEEMS",
                                       .from = "ceems@example.org",
                                       .to = {"ada@example.org", "bob@example.org"},
                                       .subject = "hpc-a job 7 x: COMPLETED",
                                       .text = "Hello\n",
                                       .html = "<p>Hello</p>",
                                       .id = "ceems.7@example.org",
                                       .unsubscribe = "https://x.org/m?t=1",
                                       .one_click = true,
                                       .date_ms = 1767225600000});
  EXPECT_EQ(text,
            "From: =?UTF-8?B?Q0VFTVM=?=\r\n <ceems@example.org>\r\n"
            "To: ada@example.org,\r\n bob@example.org\r\n"
            "Subject: hpc-a job 7 x: COMPLETED\r\n"
            "Date: Thu, 1 Jan 2026 00:00:00 +0000\r\n"
            "Message-ID: <ceems.7@example.org>\r\n"
            "Auto-Submitted: auto-generated\r\n"
            "X-Auto-Response-Suppress: All\r\n"
            "List-Unsubscribe: <https://x.org/m?t=1>\r\n"
            "List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n"
            "MIME-Version: 1.0\r\n"
            "Content-Type: multipart/alternative; boundary=\"=_ceems_part\"\r\n\r\n"
            "--=_ceems_part\r\n"
            "Content-Type: text/plain; charset=utf-8\r\n"
            "Content-Transfer-Encoding: base64\r\n\r\nSGVsbG8K\r\n"
            "--=_ceems_part\r\n"
            "Content-Type: text/html; charset=utf-8\r\n"
            "Content-Transfer-Encoding: base64\r\n\r\nPHA+SGVsbG88L3A+\r\n"
            "--=_ceems_part--\r\n");
}

/// What a mail program shows of a field.
std::string decoded(const std::string& field) {
  std::string out;
  const std::string value = field.substr(field.find(": ") + 2);
  for (std::string_view line : split(value, '\n')) {
    line = trim(line);
    if (line.starts_with("=?UTF-8?B?") && line.ends_with("?=")) {
      out += crypto::base64_decode(line.substr(10, line.size() - 12)).value_or("(damaged)");
    } else {
      out += line;
    }
  }
  return out;
}

TEST(Message, HasHeaderFieldsThatNamesCannotLeave) {
  EXPECT_EQ(header_field("Subject", "plain"), "Subject: plain");
  for (const std::string& hostile :
       {std::string("x\r\nBcc: eve@example.org"), std::string("x\n\n<script>"),
        std::string("x\rBcc: e"), std::string("x\0y", 3), std::string("a\x1b[0m\x7f"),
        std::string("\xE2\x80\xAE"
                    "evil"),
        std::string("x\x0b\x0c\xC2\x85y"), std::string("=?UTF-8?B?Qg==?=")}) {
    const std::string field = header_field("Subject", hostile);
    for (const std::string_view line : split(field, '\n')) {
      EXPECT_TRUE(line.starts_with("Subject: ") || line.starts_with(" ")) << field;
      EXPECT_LE(trim(line).size(), 76U);
    }
    const std::string shown = decoded(field);
    EXPECT_THAT(shown, Not(HasSubstr("\n")));
    EXPECT_THAT(shown, Not(HasSubstr("\r")));
    EXPECT_THAT(shown, Not(HasSubstr("\xE2\x80\xAE")));
    EXPECT_THAT(shown, Not(HasSubstr("\x1b")));
    EXPECT_THAT(shown, Not(HasSubstr("\xC2\x85")));
  }
  EXPECT_EQ(decoded(header_field("Subject", "=?UTF-8?B?Qg==?=")), "=?UTF-8?B?Qg==?=");
  std::string longer;
  for (int i = 0; i < 400; ++i) {
    longer += "\u00E9";
  }
  EXPECT_EQ(decoded(header_field("Subject", longer)), longer);
  EXPECT_EQ(decoded(header_field("Subject", std::string(5000, 'x'))), std::string(998, 'x'));
  EXPECT_EQ(header_field("Subject", ""), "Subject: ");
}

TEST(Message, HasNoLinesThatEndItOrBeginWithADot) {
  const std::string text = to_message({.from = "a@b.org",
                                       .to = {"c@d.org"},
                                       .subject = ".",
                                       .text = "a\r\n.\r\nRCPT TO:<eve@x.org>\n--=_ceems_part--",
                                       .id = "1@b.org",
                                       .unsubscribe = "mailto:x@y.org?subject=a>\r\nBcc: e"});
  for (const std::string_view line : split(text, '\n')) {
    EXPECT_FALSE(line.starts_with("."));
    EXPECT_FALSE(line.starts_with("Bcc"));
    EXPECT_FALSE(line.starts_with("--"));
  }
  EXPECT_THAT(text, HasSubstr("List-Unsubscribe: <mailto:x@y.org?subject=aBcc:e>\r\n"));
  EXPECT_THAT(text, Not(HasSubstr("One-Click")));
  EXPECT_THAT(text, StartsWith("From: a@b.org\r\n"));
}

}  // namespace
}  // namespace ceems::mail
