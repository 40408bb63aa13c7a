// SPDX-License-Identifier: Apache-2.0
// From PTX text to tokens, one at a time.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "gpu/ptx/module.hpp"

namespace manyscale::ptx {

enum class TokenKind : std::uint8_t {
  end,
  identifier,   // add, %r1, $L__BB0_1, _
  directive,    // .u32, .shared::cta, .1d: the dot is part of the text
  integer,      // 12, 0x1F, 017, 0b11, 5U
  floating,     // 1.5, 1e3, 0f3F800000, 0d3FF0000000000000
  string,       // "text", with its quotes
  punctuation,  // symbol: one character, or two as first + 256 * second
};

// A word of the PTX text and where it stands.
struct Token {
  TokenKind kind = TokenKind::end;
  std::uint16_t symbol = 0;
  std::string_view text;
  Location where;

  bool is(char punctuation) const { return symbol == static_cast<unsigned char>(punctuation); }
  bool is(char first, char second) const {
    return symbol == static_cast<unsigned char>(first) + 256U * static_cast<unsigned char>(second);
  }
  bool is_directive(std::string_view name) const { return kind == TokenKind::directive && text == name; }
  bool is_identifier(std::string_view name) const { return kind == TokenKind::identifier && text == name; }
  const char* begin() const { return text.data(); }
  const char* end() const { return text.data() + text.size(); }
};

// Gives the tokens of a text in order, without comments; the text must outlive it. Copies go on
// independently, which is how a parser looks ahead.
class Lexer {
 public:
  Lexer(std::string_view text, const std::string& file);

  const Token& token() const { return token_; }
  void advance();
  // Where the token before the present one ended.
  const char* previous_end() const { return previous_end_; }
  // Reads the present token again as a number: ".5" is a modifier to the lexer and a number to an operand.
  void reread_as_number();
  // Ends the parse with "file:line:column: message".
  [[noreturn]] void fail(Location where, const std::string& message) const;

 private:
  void skip_blanks();
  void skip_comment();
  void read_number();
  void read_directive();
  void read_string();
  Location here(const char* position) const;
  void finish(TokenKind kind, const char* end);

  const char* position_;
  const char* end_;
  const char* line_begin_;
  const char* previous_end_;
  const std::string* file_;
  std::uint32_t line_ = 1;
  Token token_;
};

// A token or name as it may stand in a message: in quotes, shortened, and without unprintable characters.
std::string quoted(std::string_view text);

}  // namespace manyscale::ptx
