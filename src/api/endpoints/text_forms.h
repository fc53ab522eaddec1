#pragma once

#include <cstdint>
#include <string>

#include "api/endpoints/endpoint.h"
#include "base/result.h"
#include "report/report.h"

namespace ceems::api {

/// The forms of reports and digests, with the rarest last.
enum class Format : std::uint8_t { kJson, kText, kAscii, kMarkdown, kHtml, kJs1, kJs1Json };

/// How an answer is to look.
struct TextForm {
  Format format = Format::kJson;
  report::View view = {};
};

/// Reads the parameters `format`, up to `last`, `width`, `lang` and `all`. kInvalidArgument with a
/// text for clients.
Result<TextForm> parse_text_form(const Services& services, const Params& params, Format last);

/// Answers 200 with a text in this form, which is not JSON of the envelope.
void answer_text(Call& call, Format format, std::string text);

}  // namespace ceems::api
