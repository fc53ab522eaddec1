#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "metrics/desc.h"

namespace ceems::metrics {

/// One sample of a text in Prometheus' exposition format.
struct TextSample {
  Desc desc;                        ///< with the type and help of its family
  std::vector<std::string> labels;  ///< values in the order of desc.label_names
  double value = 0;                 ///< may be NaN or infinite
};

struct TextLimits {
  std::size_t max_samples = 10'000;
  std::size_t max_labels = 30;
};

/// Parses a page of version 0.0.4
/// (https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format). The samples of
/// histograms and summaries are untyped, with the names that they have in the text. A family
/// without a help text has that of kNoHelp. kParse, with the number of the line, for anything that
/// does not have this form, for timestamps, for series that occur twice and beyond the limits; no
/// part of such a page is returned.
Result<std::vector<TextSample>> parse_text_format(std::string_view text,
                                                  const TextLimits& limits = {});

inline constexpr std::string_view kNoHelp = "Read from a text file.";

}  // namespace ceems::metrics
