#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ceems {

/// The values for a template. Each name is in one of the two maps.
struct TemplateData {
  std::map<std::string, std::string, std::less<>> texts = {};
  std::map<std::string, std::vector<TemplateData>, std::less<>> lists = {};
};

/// Fills in a text with tags as in Mustache (https://mustache.github.io/mustache.5.html):
///   {{name}}               the text, escaped for HTML
///   {{{name}}}             the text as it is
///   {{#name}}...{{/name}}  once for each item of the list, or once if the text is not empty
///   {{^name}}...{{/name}}  once if the list or the text is empty
/// A name that an item lacks is looked up outside the section. A section tag alone on its line
/// leaves no empty line. In a longer run of braces the last ones belong to the tag, so a tag may
/// follow a brace of JSON.
///
/// Templates are part of the program: an unknown name or an unclosed section aborts it.
std::string render_template(std::string_view text, const TemplateData& data);

}  // namespace ceems
