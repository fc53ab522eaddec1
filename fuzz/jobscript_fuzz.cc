#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/strings.h"
#include "jobscript/amounts.h"
#include "jobscript/request.h"

/// Job scripts and command lines are the user's: nothing but amounts and names of resources may
/// come out as a directive.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace jobscript = ceems::jobscript;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> words;
  for (std::string_view rest = text.substr(0, text.find('\n')); !rest.empty();) {
    words.emplace_back(ceems::take_word(rest));
  }
  for (const auto form : {jobscript::Form::kSlurm, jobscript::Form::kPbs, jobscript::Form::kLsf,
                          jobscript::Form::kK8s}) {
    const auto request = read_request(form, split_command(form, words), text);
    if (!request) {
      continue;
    }
    CEEMS_CHECK(ceems::has_only_words(request->executable, "-._+"));
    for (const auto& number : {request->nodes, request->gpus, request->memory_bytes,
                               request->time_limit_s, request->array_tasks}) {
      CEEMS_CHECK(number.value_or(0) >= 0);
    }
    CEEMS_CHECK(request->cpus.value_or(0) >= 0);
    for (const std::string& line : request->directives) {
      CEEMS_CHECK(ceems::has_only_words(line, "-._:,=*+[]/ \""));
    }
  }
  (void)jobscript::form_of(text);
  (void)jobscript::slurm_seconds(text);
  (void)jobscript::array_tasks(text);
  CEEMS_CHECK(jobscript::clock_seconds(text) >= 0);
  return 0;
}
