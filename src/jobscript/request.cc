#include "jobscript/request.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/strings.h"
#include "jobscript/submit_options.h"

namespace ceems::jobscript {
namespace {

/// Options without a value. Options of qsub may be joined ("-hV"), options of bsub are words.
constexpr std::string_view kPbsFlags = "fhIVXzG";
constexpr std::array<std::string_view, 19> kLsfFlags{
    "-B", "-H",  "-I", "-IS", "-ISp", "-ISs", "-IX", "-Ip", "-Is", "-K",
    "-N", "-Ne", "-V", "-h",  "-hl",  "-r",   "-rn", "-ul", "-x"};

bool takes_value(Form form, std::string_view word) {
  if (form == Form::kLsf) {
    const bool inside = word.size() > 2 && !is_letter(word[2]);  // "-n4"
    return !inside && std::ranges::find(kLsfFlags, word) == kLsfFlags.end();
  }
  if (form == Form::kK8s && word.contains('=')) {
    return false;
  }
  // "-l" takes the next word, "-lselect=1" holds its value.
  const std::size_t letter = word.find_first_not_of(kPbsFlags, 1);
  return form == Form::kK8s || letter + 1 == word.size();
}

std::string_view file_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

bool is_manifest(std::string_view script) {
  bool kind = false;
  bool version = false;
  for (std::string_view rest = script; !rest.empty();) {
    const std::string_view line = take_until(rest, '\n');
    kind = kind || line.starts_with("kind:");
    version = version || line.starts_with("apiVersion:");
    if (kind && version) {
      return true;
    }
  }
  return script.starts_with('{') && script.contains("\"apiVersion\"");
}

}  // namespace

Command split_command(Form form, std::span<const std::string> words) {
  Command command;
  std::size_t script = 0;
  if (form == Form::kSlurm) {
    static_cast<void>(read_submit_words(words, script));
  } else {
    for (; script < words.size(); ++script) {
      const std::string& word = words[script];
      if (word.size() < 2 || word.front() != '-' || word == "--") {
        script += word == "--" ? 1 : 0;
        break;
      }
      if (form == Form::kK8s && (word == "-f" || word.starts_with("--filename"))) {
        const std::size_t equals = word.find('=');
        if (equals != std::string::npos) {
          command.script = word.substr(equals + 1);
          return command;
        }
        continue;  // the next word is the file
      }
      script += takes_value(form, word) ? 1 : 0;
    }
  }
  script = std::min(script, words.size());
  command.options.assign(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(script));
  if (script < words.size()) {
    command.script = words[script];
  }
  return command;
}

std::optional<Form> form_of(std::string_view script) {
  constexpr std::array<std::pair<std::string_view, Form>, 4> kPrefixes{{{"#SBATCH", Form::kSlurm},
                                                                        {"#SLURM", Form::kSlurm},
                                                                        {"#PBS", Form::kPbs},
                                                                        {"#BSUB", Form::kLsf}}};
  if (!script.starts_with("#!") && is_manifest(script)) {
    return Form::kK8s;
  }
  for (std::string_view rest = script; !rest.empty();) {
    const std::string_view line = take_until(rest, '\n');
    for (const auto& [prefix, form] : kPrefixes) {
      if (line.starts_with(prefix)) {
        return form;
      }
    }
    const std::string_view text = trim(line);
    if (!text.empty() && text.front() != '#') {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

std::vector<std::string> directive_words(std::string_view script, std::string_view prefix) {
  constexpr std::size_t kMaxDirectives = std::size_t{16} << 10U;
  std::vector<std::string> words;
  std::size_t bytes = 0;
  while (!script.empty()) {
    std::string_view line = trim(take_until(script, '\n'));
    if (line.starts_with(prefix)) {
      line.remove_prefix(prefix.size());
      bytes += line.size();
      if (bytes > kMaxDirectives) {
        break;
      }
      bool open = false;
      while (auto word = take_directive_word(line, false, open)) {
        words.push_back(*std::move(word));
      }
    } else if (!line.empty() && line.front() != '#' && line.front() != ':') {
      break;
    }
  }
  return words;
}

Result<Request> read_request(Form form, const Command& command, std::string_view script) {
  if (form == Form::kK8s) {
    return read_k8s(script);
  }
  Request request = form == Form::kSlurm ? read_slurm(command.options, script)
                    : form == Form::kPbs ? read_pbs(command.options, script)
                                         : read_lsf(command.options, script);
  request.executable = executable_of(script);
  if (request.name.empty() && command.script != "-") {
    request.name = file_of(command.script);
  }
  return request;
}

std::string executable_of(std::string_view script) {
  // Before the program, or instead of one.
  constexpr std::string_view kPreparations =
      " [ [[ : . alias case cat cd conda cp date declare do done echo elif else esac export fi for "
      "function hostname if local ls ml mkdir module mv printf pwd rm set shopt sleep source spack "
      "tar then trap ulimit umask unset until wait while { } ";
  constexpr std::string_view kLaunchers =
      " aprun apptainer bash blaunch env exec ibrun jsrun mpiexec mpiexec.hydra mpirun nohup "
      "numactl "
      "perl pbsdsh python python3 Rscript sh singularity srun time ";
  const auto is_in = [](std::string_view list, std::string_view name) {
    return list.contains(fmt::format(" {} ", name));
  };
  constexpr std::size_t kMaxName = 128;
  while (!script.empty()) {
    std::string_view line = trim(take_until(script, '\n'));
    bool launched = false;
    while (true) {
      const std::string_view word = take_word(line);
      const std::string_view name = file_of(word);
      if (word.empty() || (!launched && (word.front() == '#' || word.front() == '-'))) {
        break;
      }
      // Options and their numbers, assignments, and what a shell would fill in.
      if (word.front() == '-' || word.front() == '$' || is_digit(word.front()) ||
          (word.contains('=') && is_word(word.front(), "_"))) {
        continue;
      }
      if (is_in(kPreparations, name)) {
        break;
      }
      if (is_in(kLaunchers, name)) {
        launched = true;
        continue;
      }
      if (name.size() <= kMaxName && has_only_words(name, "-._+")) {
        return std::string(name);
      }
      break;
    }
  }
  return {};
}

}  // namespace ceems::jobscript
