// SPDX-License-Identifier: Apache-2.0
#include "gpu/ptx/lexer.hpp"

#include <array>

#include "gpu/ptx/parser.hpp"

namespace manyscale::ptx {
namespace {

enum CharacterClass : std::uint8_t { kBlank = 1, kWord = 2, kStart = 4, kDigit = 8, kHexadecimal = 16 };

constexpr std::array<std::uint8_t, 256> make_classes() {
  std::array<std::uint8_t, 256> classes{};
  for (const char c : {' ', '\t', '\r', '\v', '\f'}) classes[static_cast<unsigned char>(c)] = kBlank;
  for (int c = 'a'; c <= 'z'; ++c) classes[c] = kWord | kStart;
  for (int c = 'A'; c <= 'Z'; ++c) classes[c] = kWord | kStart;
  for (int c = '0'; c <= '9'; ++c) classes[c] = kWord | kDigit | kHexadecimal;
  for (int c = 'a'; c <= 'f'; ++c) classes[c] |= kHexadecimal;
  for (int c = 'A'; c <= 'F'; ++c) classes[c] |= kHexadecimal;
  classes['_'] = kWord | kStart;
  classes['$'] = kWord | kStart;
  classes['%'] = kStart;
  return classes;
}

constexpr std::array<std::uint8_t, 256> kClasses = make_classes();

bool has_class(char c, std::uint8_t classes) {
  return (kClasses[static_cast<unsigned char>(c)] & classes) != 0;
}

const char* skip(const char* position, std::uint8_t classes) {
  // The text ends with a NUL, which is in no class.
  while (has_class(*position, classes)) ++position;
  return position;
}

}  // namespace

std::string quoted(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  constexpr char kDigits[] = "0123456789abcdef";
  std::string result = "'";
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F) {
      result += c;
    } else {
      result += "\\x";
      result += kDigits[byte >> 4];
      result += kDigits[byte & 15];
    }
  }
  if (text.size() > kLongest) result += "…";
  return result + "'";
}

Lexer::Lexer(std::string_view text, const std::string& file)
    : position_(text.data()),
      end_(text.data() + text.size()),
      line_begin_(text.data()),
      previous_end_(text.data()),
      file_(&file) {
  if (text.starts_with("\xEF\xBB\xBF")) {
    position_ += 3;
    line_begin_ = position_;
  }
  advance();
}

Location Lexer::here(const char* position) const {
  return {line_, static_cast<std::uint32_t>(position - line_begin_) + 1};
}

void Lexer::fail(Location where, const std::string& message) const {
  throw SyntaxError(*file_ + ":" + std::to_string(where.line) + ":" + std::to_string(where.column) + ": " +
                    message);
}

void Lexer::finish(TokenKind kind, const char* end) {
  token_.kind = kind;
  token_.text = {position_, static_cast<std::size_t>(end - position_)};
  position_ = end;
}

void Lexer::advance() {
  previous_end_ = token_.end();
  skip_blanks();
  token_.where = here(position_);
  token_.symbol = 0;
  const char c = *position_;
  if (has_class(c, kStart)) {
    const char* end = skip(position_ + 1, kWord);
    if (c == '%' && end == position_ + 1) {
      token_.symbol = '%';
      finish(TokenKind::punctuation, end);
    } else {
      finish(TokenKind::identifier, end);
    }
    return;
  }
  if (has_class(c, kDigit)) return read_number();
  switch (c) {
    case '.':
      return read_directive();
    case '"':
      return read_string();
    case '<':
    case '>':
    case '=':
    case '!':
    case '&':
    case '|': {
      const char next = position_[1];
      const bool twice = next == c && c != '!';
      const bool with_equals = next == '=' && c != '&' && c != '|';
      token_.symbol = static_cast<unsigned char>(c);
      if (twice || with_equals) token_.symbol += 256U * static_cast<unsigned char>(next);
      return finish(TokenKind::punctuation, position_ + (twice || with_equals ? 2 : 1));
    }
    case ',':
    case ';':
    case ':':
    case '[':
    case ']':
    case '{':
    case '}':
    case '(':
    case ')':
    case '+':
    case '-':
    case '*':
    case '/':
    case '^':
    case '~':
    case '?':
    case '@':
      token_.symbol = static_cast<unsigned char>(c);
      return finish(TokenKind::punctuation, position_ + 1);
    case '\0':
      if (position_ == end_) return finish(TokenKind::end, position_);
      [[fallthrough]];
    default:
      fail(token_.where, "unexpected character " + quoted({position_, 1}));
  }
}

void Lexer::skip_blanks() {
  for (;;) {
    position_ = skip(position_, kBlank);
    if (*position_ == '\n') {
      line_begin_ = ++position_;
      ++line_;
    } else if (*position_ == '#' || (*position_ == '/' && position_[1] == '/')) {
      const std::size_t rest = static_cast<std::size_t>(end_ - position_);
      const std::size_t length = std::string_view(position_, rest).find('\n');
      position_ = length == std::string_view::npos ? end_ : position_ + length;
    } else if (*position_ == '/' && position_[1] == '*') {
      skip_comment();
    } else {
      return;
    }
  }
}

void Lexer::skip_comment() {
  const Location begin = here(position_);
  for (position_ += 2; position_ != end_; ++position_) {
    if (*position_ == '*' && position_[1] == '/') {
      position_ += 2;
      return;
    }
    if (*position_ == '\n') {
      line_begin_ = position_ + 1;
      ++line_;
    }
  }
  fail(begin, "this comment has no end, '*/' was expected");
}

void Lexer::reread_as_number() {
  position_ = token_.begin();
  read_number();
}

void Lexer::read_number() {
  const char* p = position_;
  TokenKind kind = TokenKind::integer;
  const char second = *p == '0' ? static_cast<char>(p[1] | 0x20) : '\0';
  bool complete = true;
  if (second == 'f' || second == 'd') {
    const std::ptrdiff_t digits = second == 'f' ? 8 : 16;
    kind = TokenKind::floating;
    p = skip(p + 2, kHexadecimal);
    complete = p - position_ == digits + 2;
  } else if (second == 'x') {
    p = skip(p + 2, kHexadecimal);
    complete = p - position_ > 2;
    if (*p == 'U') ++p;
  } else if (second == 'b') {
    p += 2;
    while (*p == '0' || *p == '1') ++p;
    complete = p - position_ > 2;
    if (*p == 'U') ++p;
  } else {
    p = skip(p, kDigit);
    if (*p == '.' && !has_class(p[1], kStart)) {
      kind = TokenKind::floating;
      p = skip(p + 1, kDigit);
    } else if (*p == '.' && (p[1] == 'e' || p[1] == 'E') &&
               (has_class(p[2], kDigit) || p[2] == '-' || p[2] == '+')) {
      kind = TokenKind::floating;
      ++p;
    }
    if (*p == 'e' || *p == 'E') {
      kind = TokenKind::floating;
      ++p;
      if (*p == '+' || *p == '-') ++p;
      complete = has_class(*p, kDigit);
      p = skip(p, kDigit);
    }
    if (kind == TokenKind::integer && *position_ == '0') {
      for (const char* digit = position_; digit != p; ++digit) complete = complete && *digit < '8';
    }
    if (kind == TokenKind::integer && *p == 'U') ++p;
  }
  if (has_class(*p, kWord)) complete = false;
  if (!complete) {
    const char* end = skip(p, kWord);
    fail(token_.where, "malformed number " + quoted({position_, static_cast<std::size_t>(end - position_)}));
  }
  finish(kind, p);
}

void Lexer::read_directive() {
  const char* p = skip(position_ + 1, kWord);
  if (p == position_ + 1) fail(token_.where, "unexpected character '.'");
  while (*p == ':' && p[1] == ':' && has_class(p[2], kWord)) p = skip(p + 2, kWord);
  finish(TokenKind::directive, p);
}

void Lexer::read_string() {
  const char* p = position_ + 1;
  while (*p != '"') {
    if (p == end_ || *p == '\n') fail(token_.where, "this string has no end, '\"' was expected");
    if (*p == '\\' && p + 1 != end_ && p[1] != '\n') ++p;
    ++p;
  }
  finish(TokenKind::string, p + 1);
}

}  // namespace manyscale::ptx
