// Reads queries from standard input, one JSON-free line each with \n and \\ escaped, and prints for
// each "ok TEXT" or "no MESSAGE". For the test that holds the parser against a real Prometheus.

#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "promql/parser.h"
#include "promql/printer.h"

namespace {

std::string unescape(const std::string& line) {
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\' && i + 1 < line.size()) {
      ++i;
      out += line[i] == 'n' ? '\n' : line[i];
    } else {
      out += line[i];
    }
  }
  return out;
}

std::string escape(const std::string& text) {
  std::string out;
  for (const char byte : text) {
    if (byte == '\n') {
      out += "\\n";
    } else if (byte == '\\') {
      out += "\\\\";
    } else {
      out += byte;
    }
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  // "2": the language of Prometheus 2; "all": with what is behind feature flags.
  const std::string_view which = argc < 2 ? "" : argv[1];
  const ceems::promql::ParseOptions options{.prometheus3 = which != "2",
                                            .experimental = which == "all"};
  std::string line;
  while (std::getline(std::cin, line)) {
    const auto parsed = ceems::promql::parse(unescape(line), options);
    fmt::print("{} {}\n", parsed ? "ok" : "no",
               escape(parsed ? ceems::promql::print(**parsed) : parsed.error().text()));
  }
  return 0;
}
