#include "api/endpoints/text_forms.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"

namespace ceems::api {
namespace {

struct FormatName {
  std::string_view name, content_type;
};
constexpr std::array kFormats{FormatName{"json", "application/json"},
                              FormatName{"text", "text/plain; charset=utf-8"},
                              FormatName{"ascii", "text/plain; charset=us-ascii"},
                              FormatName{"markdown", "text/markdown; charset=utf-8"},
                              FormatName{"html", "text/html; charset=utf-8"},
                              FormatName{"js1", "text/plain; charset=us-ascii"},
                              FormatName{"js1-json", "application/json"}};

constexpr std::size_t kMinWidth = 60;
constexpr std::size_t kMaxWidth = 240;

/// "json, text or ascii"
std::string names_of(std::span<const FormatName> formats) {
  std::string text;
  for (const FormatName& format : formats) {
    const bool last = &format == &formats.back();
    text += fmt::format("{}{}", text.empty() ? "" : (last ? " or " : ", "), format.name);
  }
  return text;
}

}  // namespace

Result<TextForm> parse_text_form(const Services& services, const Params& params, Format last) {
  const std::span formats(kFormats.begin(), static_cast<std::size_t>(last) + 1);
  TextForm form;
  const std::string_view name = params.text(Param::kFormat);
  const auto format =
      name.empty() ? formats.begin() : std::ranges::find(formats, name, &FormatName::name);
  if (format == formats.end()) {
    return fail(ErrorCode::kInvalidArgument, "query parameter 'format': expected {}",
                names_of(formats));
  }
  form.format = static_cast<Format>(format - formats.begin());
  if (!params.width.empty()) {
    const auto width = parse_int<std::size_t>(params.width);
    if (!width || *width < kMinWidth || *width > kMaxWidth) {
      return fail(ErrorCode::kInvalidArgument,
                  "query parameter 'width': expected a whole number from {} to {}", kMinWidth,
                  kMaxWidth);
    }
    form.view.width = *width;
  }
  form.view.language = advice::catalogue(params.language).language;
  form.view.ascii = form.format == Format::kAscii;
  form.view.all_findings = params.all_findings;
  form.view.help_url = services.site->help_text();
  return form;
}

void answer_text(Call& call, Format format, std::string text) {
  net::Response& response = *call.response;
  response.status = 200;
  response.set_header("Content-Type",
                      std::string(kFormats.at(static_cast<std::size_t>(format)).content_type));
  response.set_header("X-Content-Type-Options", "nosniff");
  if (format == Format::kHtml) {
    response.set_header("Content-Security-Policy",
                        report::html_policy() + "; frame-ancestors 'none'; sandbox");
    response.set_header("Referrer-Policy", "no-referrer");
  }
  response.body = std::move(text);
}

}  // namespace ceems::api
