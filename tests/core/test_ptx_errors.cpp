// SPDX-License-Identifier: Apache-2.0
// What the parser of PTX refuses, and where it says so.
#include <string>
#include <string_view>
#include <vector>

#include "gpu/ptx/parser.hpp"
#include "test_checks.hpp"

using namespace manyscale::ptx;

namespace {

std::string message_of(const std::string& text, const Limits& limits = {}) {
  try {
    parse(text, "t", limits);
    return "no error";
  } catch (const SyntaxError& error) {
    return error.what();
  }
}

void expect(const std::string& text, const std::string& message, const Limits& limits = {}) {
  const std::string found = message_of(text, limits);
  manyscale::test::check(found == message,
                         text.substr(0, 200) + "\n  expected " + message + "\n  found    " + found);
}

struct Case {
  std::string_view text;
  std::string_view message;  // from the line on
};

const std::string kHead = ".version 8.3\n.target sm_80\n.address_size 64\n";

// The text starts in line 4.
void in_module(const std::vector<Case>& cases) {
  for (const Case& each : cases) expect(kHead + std::string(each.text), "t:" + std::string(each.message));
}

// The text starts in line 6.
void in_kernel(const std::vector<Case>& cases) {
  const std::string before = kHead +
                             ".global .u32 g[8]; .func f(); .entry k(.param .u64 a) {\n.reg .pred %p<4>; "
                             ".reg .b32 %r<10>, count; .reg .v2 .f32 v;\n";
  for (const Case& each : cases)
    expect(before + std::string(each.text) + "\n}", "t:" + std::string(each.message));
}

TEST(heads_of_modules) {
  expect("", "t:1:1: expected '.version' at the start of the module, found the end of the text");
  expect("\n  .target sm_80", "t:2:3: expected '.version' at the start of the module, found '.target'");
  expect(".version 8\n.target sm_80", "t:1:10: expected a version such as 8.0, found '8'");
  expect(".version 8.x", "t:1:10: expected a version such as 8.0, found '8'");
  expect(".version 99999999999.1", "t:1:10: expected a version such as 8.0, found '99999999999.1'");
  expect(".version 8.0\n.entry k() {}", "t:2:1: expected '.target' after '.version', found '.entry'");
  expect(".version 8.0\n.target 80", "t:2:9: expected a target such as sm_80, found '80'");
  expect(".version 8.0\n.target sm_80\n.address_size 16",
         "t:3:15: expected an address size of 32 or 64, found '16'");
  in_module({
      {".version 8.0", "4:1: '.version' stands once, at the start of the module"},
      {"k", "4:1: expected a declaration, a function or a directive, found 'k'"},
      {"@x", "4:2: expected a declaration, a function or a directive, found 'x'"},
      {".globl .u32 a;", "4:1: unknown directive '.globl', did you mean '.global'?"},
      {".visible .u32 a;",
       "4:10: expected '.func', '.entry' or a state space after the linkage, found '.u32'"},
      {".file x", "4:7: expected the number of a file, found 'x'"},
      {".file 1", "4:8: expected the name of a file in quotes, found the end of the text"},
      {".file 1 \"a\", b", "4:14: expected a number, found 'b'"},
      {".file 4000000000 \"a\"", "4:7: the number of a file is too large: '4000000000'"},
      {".file 4294967295 \"a\"", "4:7: the number of a file is too large: '4294967295'"},
      {".loc 1 2", "4:9: expected the number of a column, found the end of the text"},
      {".loc 1 2 3, inlined 1", "4:13: expected 'function_name' or 'inlined_at', found 'inlined'"},
      {".loc 1 2 3, function_name 4", "4:27: expected a label after 'function_name', found '4'"},
      {".section { }", "4:10: expected the name of a section, found '{'"},
      {".section .debug {\n{ .b8 1 }", "4:17: '{' without its '}'"},
      {".pragma nounroll;", "4:9: expected a string after '.pragma', found 'nounroll'"},
      {".pragma \"nounroll\"", "4:19: expected ';' after '.pragma', found the end of the text"},
      {".alias a, b;", "4:8: unknown function 'a'"},
      {".func f(); .alias f, f;", "4:19: 'f' is made an alias of itself"},
      {".func f(); .func g(); .alias f, g; .alias g, f;", "4:30: the aliases of 'f' have no end"},
      {".func f() { } .func g(); .alias f, g;", "4:33: 'f' has a body and cannot be an alias"},
      {".func f(); .func g(); .alias f, g; .func f() { }", "4:42: 'f' is an alias and cannot have a body"},
      {".entry k() { } .func g(); .alias g, k;", "4:37: 'k' is not a function that can have an alias"},
  });
}

TEST(characters) {
  in_module({
      {"\n\t^", "5:2: expected a declaration, a function or a directive, found '^'"},
      {"/* a\n*", "4:1: this comment has no end, '*/' was expected"},
      {"/*/", "4:1: this comment has no end, '*/' was expected"},
      {".pragma \"abc\n", "4:9: this string has no end, '\"' was expected"},
      {".pragma \"abc\\", "4:9: this string has no end, '\"' was expected"},
      {".pragma \"", "4:9: this string has no end, '\"' was expected"},
      {".global .u32 \xC3\xA9;", "4:14: unexpected character '\\xc3'"},
      {"`", "4:1: unexpected character '`'"},
      {". global", "4:1: unexpected character '.'"},
  });
  expect(kHead + std::string("\0.global .u32 a;", 16), "t:4:1: unexpected character '\\x00'");
  expect(kHead + ".global .u32 a; // \xC3\xA9 in a comment and \x01", "no error");
  in_kernel({
      {"mov.b32 %r1, 0x;", "6:14: malformed number '0x'"},
      {"mov.b32 %r1, 0xFG;", "6:14: malformed number '0xFG'"},
      {"mov.b32 %r1, 08;", "6:14: malformed number '08'"},
      {"mov.b32 %r1, 0b12;", "6:14: malformed number '0b12'"},
      {"mov.b32 %r1, 12a;", "6:14: malformed number '12a'"},
      {"mov.b32 %r1, 5u;", "6:14: malformed number '5u'"},
      {"mov.b32 %r1, 1e;", "6:14: malformed number '1e'"},
      {"mov.b32 %r1, 0f3F80;", "6:14: malformed number '0f3F80'"},
      {"mov.b32 %r1, 0d3F800000;", "6:14: malformed number '0d3F800000'"},
      {"mov.b32 %r1, 18446744073709551616;",
       "6:14: the integer '18446744073709551616' has more than 64 bits"},
  });
}

TEST(declarations) {
  in_module({
      {".global .u33 a;", "4:9: unknown type '.u33'"},
      {".global .u32 .u32 a;", "4:14: a second type, '.u32'"},
      {".global a;", "4:9: expected a type such as .b32, found 'a'"},
      {".global .u32 5;", "4:14: expected a name to declare, found '5'"},
      {".global .u32 _;", "4:14: expected a name to declare, found '_'"},
      {".global .u32 a, ;", "4:17: expected a name to declare, found ';'"},
      {".global .u32 a\n.global .u32 b;", "5:1: expected ';' after the declaration, found '.global'"},
      {".global .pred a;", "4:1: '.global' cannot have the type .pred"},
      {".reg .b32 a;", "4:1: '.reg' must be declared in a function"},
      {".param .b32 a;", "4:1: '.param' must be declared in a function"},
      {".global .align 3 .b32 a;", "4:16: an alignment must be a power of two, found '3'"},
      {".global .align 0 .b32 a;", "4:16: an alignment must be a power of two, found '0'"},
      {".global .align x .b32 a;", "4:16: expected an alignment, found 'x'"},
      {".global .align 4294967296 .b32 a;", "4:16: an alignment is too large: '4294967296'"},
      {".global .u32 a; .global .u32 a;", "4:30: 'a' is declared twice in the same scope"},
      {".global .u32 a1; .global .u32 a<2>;", "4:31: 'a1' is declared twice in the same scope"},
      {".global .u32 a<2>; .global .u32 a1;", "4:33: 'a1' is declared twice in the same scope"},
      {".global .u32 f; .func f();", "4:23: 'f' is declared twice in the same scope"},
      {".extern .global .u32 a; .shared .u32 a;", "4:38: 'a' was declared in the space .global"},
      {".shared .b8 a[];", "4:13: the size of 'a' is left out, which only '.extern' allows"},
      {".extern .shared .b8 a[4][];", "4:21: only the first dimension of 'a' may be left out"},
      {".global .b8 a[4][0];", "4:18: only the first dimension of 'a' may be 0"},
      {".global .b8 a[-1];", "4:15: the size of an array must be a whole number, found '-1'"},
      {".global .b8 a[1.5];", "4:15: the size of an array must be a whole number, found '1.5'"},
      {".global .b8 a[4;", "4:16: expected ']' after the size of the array, found ';'"},
      {".global .b8 a[1099511627777];", "4:13: 'a' has more than 1099511627776 bytes"},
      {".global .b64 a[4294967296][4294967296];", "4:14: 'a' has more than 1099511627776 bytes"},
      {".global .b8 a[0xFFFFFFFFFFFFFFFF];", "4:13: 'a' has more than 1099511627776 bytes"},
      {".global .u32 a<1000001>;", "4:14: more than 1000000 variables, at 'a'"},
      {".global .u32 a<x>;", "4:16: expected a number of registers, found 'x'"},
      {".global .u32 a<4;", "4:17: expected '>' after the number, found ';'"},
      {".global .attribute(.managed .u32 a;", "4:19: '(' without its ')'"},
  });
  in_kernel({
      {".reg .u4 a;", "6:1: '.reg' cannot have the type .u4"},
      {".reg .b32 b, b;", "6:14: 'b' is declared twice in the same scope"},
      {".reg .b32 %r<3>;", "6:11: '%r' is declared twice in the same scope"},
      {".reg .b32 %r4;", "6:11: '%r4' is declared twice in the same scope"},
      {".reg .b32 a1; .reg .b32 a<4>;", "6:25: 'a1' is declared twice in the same scope"},
      {".reg .b32 a;", "6:11: 'a' is declared twice in the same scope"},
      {"L: .reg .b32 L;", "6:14: 'L' is declared twice in the same scope"},
      {"L: L: ret;", "6:4: 'L' is declared twice in the same scope"},
      {".reg .b32 b[4];", "6:12: expected ';' after the declaration, found '['"},
      {".reg .b32 x<4000000000>;", "6:11: a function may have 1000000 registers, 'x' makes it more"},
      {".reg .b32 x<999988>;", "6:11: a function may have 1000000 registers, 'x' makes it more"},
      {".visible .reg .b32 x;", "6:10: '.reg' cannot be linked to other modules"},
      {".reg .b32 WARP_SZ;", "6:11: expected a name to declare, found 'WARP_SZ'"},
      {".maxntid 5;", "6:1: unknown directive '.maxntid'"},
  });
}

TEST(initialisers) {
  in_module({
      {".shared .u32 a = 5;", "4:14: 'a' is .shared and cannot be given a value"},
      {".extern .global .u32 a = 5;", "4:22: 'a' is defined in another module and cannot be given a value"},
      {".global .u32 a = {5};", "4:18: 'a' is one value, found '{'"},
      {".global .u32 a[2] = 5;", "4:21: expected '{' before the values of 'a', found '5'"},
      {".global .u32 a[2] = {1, 2, 3};", "4:28: more values than 'a' has elements, at '3'"},
      {".global .u32 a[2] = {1, {2}};", "4:25: more braces than 'a' has dimensions"},
      {".global .u32 a[2][2] = {1, 2};", "4:25: expected '{' before the values, found '1'"},
      {".global .u32 a[2] = {1, };", "4:25: expected a constant or an address, found '}'"},
      {".global .u32 a[2] = {1 2};", "4:24: expected '}' or ',' after a value, found '2'"},
      {".global .u32 a[2] = {1", "4:23: expected '}' or ',' after a value, found the end of the text"},
      {".global .b8 a[2] = \"x\";", "4:20: expected '{' before the values of 'a', found '\"x\"'"},
      {".global .f32 a = 1;", "4:18: the value '1' does not fit the type .f32"},
      {".global .u32 a = 1.5;", "4:18: the value '1.5' does not fit the type .u32"},
      {".global .f16 a = 0x3C00;", "4:18: the value '0x3C00' does not fit the type .f16"},
      {".global .u32 a; .global .u8 b = a;", "4:33: the value 'a' does not fit the type .u8"},
      {".global .u32 a; .global .f64 b = a+4;", "4:34: the value 'a+4' does not fit the type .f64"},
      {".global .u64 b = a;", "4:18: unknown name 'a'"},
      {".global .u32 value; .global .u64 b = valeu;", "4:38: unknown name 'valeu', did you mean 'value'?"},
      {".shared .u32 a; .global .u64 b = a;",
       "4:34: only variables in .global and .const have an address here, found 'a'"},
      {".global .u64 b = %tid;",
       "4:18: only variables and functions of the module have an address here, found '%tid'"},
      {".global .u32 a; .global .u64 b = a * 2;",
       "4:36: an integer may be added to an address or subtracted from it, and nothing else, at '*'"},
      {".global .u32 a; .global .u64 b = a - a;",
       "4:36: an integer may be added to an address or subtracted from it, and nothing else, at '-'"},
      {".global .u32 a; .global .u64 b = -a;", "4:34: this operator needs a number, at '-'"},
      {".global .u32 a; .global .u64 b = a ? 1 : 2;", "4:36: a condition must be a number, found '?'"},
      {".global .u32 a; .global .u8 b = 0xFFF(a);", "4:33: a mask has one byte of ones, found '0xFFF'"},
      {".global .u32 a; .global .u8 b = 0xFF0(a);", "4:33: a mask has one byte of ones, found '0xFF0'"},
      {".global .u32 a; .global .u8 b = 0(a);", "4:33: a mask has one byte of ones, found '0'"},
      {".global .u8 b = 0xFF(5);", "4:21: a mask takes an address, at '('"},
      {".global .u64 b = generic(5);", "4:26: 'generic' takes an address, found '5'"},
      {".global .u64 b = generic 5;", "4:26: expected '(' after 'generic', found '5'"},
      {".global .samplerref s = 5;", "4:25: expected '{' here, found '5'"},
      {".global .b8 a[1073741825] = {1};",
       "4:13: variables with a value may have 1073741824 bytes together, 'a' makes it more"},
  });
}

TEST(expressions) {
  in_kernel({
      {"mov.b32 %r1, 1/0;", "6:15: division by zero, at '/'"},
      {"mov.b32 %r1, 1 % 0;", "6:16: division by zero, at '%'"},
      {"mov.b32 %r1, 1.0/0.0;", "6:17: division by zero, at '/'"},
      {"mov.b32 %r1, 1.0 % 2.0;", "6:18: this operator needs integers, at '%'"},
      {"mov.b32 %r1, ~1.0;", "6:14: this operator needs an integer, at '~'"},
      {"mov.b32 %r1, 0f3F800000+1.0;", "6:24: a number in the form 0f… cannot be computed with, at '+'"},
      {"mov.b32 %r1, (1;", "6:16: expected ')' after the expression, found ';'"},
      {"mov.b32 %r1, 1 ? 2;", "6:19: expected ':' between the two values of a choice, found ';'"},
      {"mov.b32 %r1, 1 + ;", "6:18: expected a constant, found ';'"},
      {"mov.b32 %r1, 1 + %r2;", "6:18: expected a constant, found '%r2'"},
      {"mov.b32 %r1, (.u32)5;", "6:15: a constant is converted to .s64, .u64 or .f64, found '.u32'"},
      {"mov.b32 %r1, (.s64 5);", "6:20: expected ')' after the type to convert to, found '5'"},
  });
}

TEST(functions) {
  in_module({
      {".entry", "4:7: expected the name of the function, found the end of the text"},
      {".entry 5()", "4:8: expected the name of the function, found '5'"},
      {".func f() ret;", "4:11: expected ';' or a body after the head of the function, found 'ret'"},
      {".func f()\n.func g();", "5:1: expected ';' or a body after the head of the function, found '.func'"},
      {".entry k() {\nret;", "5:5: the body of 'k' has no end, '}' was expected"},
      {".func f() { } .func f() { }", "4:21: the function 'f' has a second body"},
      {".func f(); .entry f();", "4:19: 'f' is declared both as '.entry' and as '.func'"},
      {".func f(.param .b32 a); .func f() { }", "4:31: 'f' was declared with other parameters or results"},
      {".func f(.param .b32 a); .func f(.param .b64 a) { }",
       "4:31: 'f' was declared with other parameters or results"},
      {".func f(.param .b32 a); .func f(.reg .b32 a) { }",
       "4:31: 'f' was declared with other parameters or results"},
      {".func f(.u32 a);", "4:9: expected '.param' or '.reg', found '.u32'"},
      {".func f(.param .u32);", "4:20: expected the name of a parameter, found ')'"},
      {".func f(.param .u32 a .param .u32 b);",
       "4:23: expected ')' or ',' after a parameter, found '.param'"},
      {".func f(.param .u32 a, .param .u32 a);", "4:36: 'a' is declared twice in the same scope"},
      {".func (.param .u32 a) f(.param .u32 a);", "4:37: 'a' is declared twice in the same scope"},
      {".func f(.param .u32 a, .reg .u32 b);",
       "4:24: parameters in '.reg' and in '.param' cannot be mixed, found '.reg'"},
      {".entry k(.reg .u32 a) { }", "4:10: the parameters of an '.entry' are '.param', found '.reg'"},
      {".entry k(.param .b8 a[]) { }", "4:21: the size of 'a' is left out"},
      {".entry k() .maxntid { }", "4:21: expected a number of threads or CTAs, found '{'"},
      {".entry k() .maxntid 1,2,3,4 { }", "4:12: '.maxntid' takes at most three numbers"},
      {".entry k() .maxnreg 5000000000 { }", "4:21: a number of registers is too large: '5000000000'"},
  });
}

TEST(instructions) {
  in_kernel({
      {"add.s32 %r1, %r2, 3", "7:1: expected ',' or ';' after an operand of 'add', found '}'"},
      {"add.s32 %r1 %r2;", "6:13: expected ',' or ';' after an operand of 'add', found '%r2'"},
      {"add.s32 %r1, ;", "6:14: expected an operand, found ';'"},
      {"add.s32 %r1, \"x\";", "6:14: expected an operand, found '\"x\"'"},
      {"%r1 = 5;", "6:1: expected an instruction, found '%r1'"},
      {";", "6:1: expected an instruction, a declaration or a label, found ';'"},
      {"5: ret;", "6:1: expected an instruction, a declaration or a label, found '5'"},
      {"@5 ret;", "6:2: expected a predicate after '@', found '5'"},
      {"@%p9 ret;", "6:2: unknown name '%p9', %p<4> declares numbers below 4"},
      {"@%r1 ret;", "6:2: '%r1' is not a predicate"},
      {"@%p1 { ret; }", "6:6: expected an instruction, found '{'"},
      {"add.s32 %r1, %r2, %r10;", "6:19: unknown name '%r10', %r<10> declares numbers below 10"},
      {"add.s32 %r1, %rr2, 1;", "6:14: unknown name '%rr2', did you mean '%r2'?"},
      {"add.s32 %r1, cuont, 1;", "6:14: unknown name 'cuont', did you mean 'count'?"},
      {"add.s32 %r1, %tidd.x, 1;", "6:14: unknown name '%tidd', did you mean '%tid'?"},
      {"add.s32 %r1, nothing_like_it, 1;", "6:14: unknown name 'nothing_like_it'"},
      {"add.s32 %r1, %r2+4, 1;", "6:17: an offset is added to a register only in brackets, found '+'"},
      {"mov.b32 %r1, %tid.q;", "6:18: '.q' is not a part of '%tid'"},
      {"mov.b32 %r1, %laneid.x;", "6:21: '.x' is not a part of '%laneid'"},
      {"mov.b32 %r1, %r2.x;", "6:17: '.x' is not a part of '%r2'"},
      {"mov.b32 %r1, %r2.b0;", "6:17: '.b0' is not a part of '%r2'"},
      {"mov.b32 %r1, v.z;", "6:15: '.z' is not a part of 'v'"},
      {"mov.b32 %r1, g.x;", "6:15: '.x' is not a part of 'g'"},
      {"vadd.u32.u32.u32 %r1, %r2.b4, %r3;", "6:26: '.b4' is not a part of '%r2'"},
      {"ld.u32 %r1, [];", "6:14: expected an address, found ']'"},
      {"ld.u32 %r1, [a;", "6:15: expected ']' after the address, found ';'"},
      {"ld.u32 %r1, [%r1+%r2];", "6:18: expected a constant, found '%r2'"},
      {"ld.u32 %r1, [%r1+1.5];", "6:18: an offset must be an integer, found '1.5'"},
      {"ld.u32 %r1, [1.5];", "6:14: an address must be an integer, found '1.5'"},
      {"ld.u32 %r1, [[a]];", "6:14: expected an operand, found '['"},
      {"ld.u32 %r1, g[%r1];", "6:15: an index must be a constant, found '%r1'"},
      {"ld.u32 %r1, g[1.5];", "6:14: an index must be an integer, at '['"},
      {"mov.b64 %r1, {};", "6:15: expected an operand, found '}'"},
      {"mov.b64 %r1, {{%r1}};", "6:15: expected an element, found '{'"},
      {"mov.b64 %r1, {%r1 %r2};", "6:19: expected '}' or ',' in the vector, found '%r2'"},
      {"mov.b64 %r1, {%r1;", "6:18: expected '}' or ',' in the vector, found ';'"},
      {"bra nowhere;", "6:5: unknown label 'nowhere'"},
      {"$L1: bra $L2;", "6:10: unknown label '$L2', did you mean '$L1'?"},
      {"bra L; { L: ret; }", "6:5: unknown label 'L'"},
      {"bra g;", "6:5: unknown label 'g'"},
      {"L: mov.b32 %r1, L;", "6:17: 'L' is a label, which cannot be an operand here"},
      {"T: .branchtargets L;", "6:19: unknown label 'L'"},
      {"T: .branchtargets 5;", "6:19: expected a label, found '5'"},
      {"L: T: .branchtargets L\nret;", "7:1: expected ';' after the labels, found 'ret'"},
      {"T: .branchtargets T;", "6:19: 'T' is not a label"},
      {".branchtargets L;", "6:1: expected a label before '.branchtargets', found '.branchtargets'"},
      {"T: .calltargets nothing;", "6:17: unknown function 'nothing'"},
      {"T: .calltargets g;", "6:17: 'g' is not a function"},
      {"T: .callprototype (.param .b32 _);", "6:34: expected '_' in place of the function's name, found ';'"},
      {"call nothing;", "6:6: unknown function 'nothing'"},
      {"call (nothing), f;", "6:7: unknown name 'nothing'"},
      {"call (%r1, f;", "6:13: expected ')' or ',' in the list, found ';'"},
  });
}

std::string repeated(std::string_view text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

TEST(limits) {
  const std::string body = kHead + ".entry k() { .reg .b32 r;\n";
  const std::string too_deep = "more than 200 braces or parentheses in each other, at ";
  expect(body + "mov.b32 r, " + repeated("(", 90) + "1" + repeated(")", 90) + "; }", "no error");
  expect(body + "mov.b32 r, " + repeated("(", 100'000), "t:5:112: " + too_deep + "'('");
  expect(body + "mov.b32 r, " + repeated("-", 100'000), "t:5:211: " + too_deep + "'-'");
  expect(body + "mov.b32 r, " + repeated("1?", 100'000), "t:5:412: " + too_deep + "'1'");
  expect(body + "mov.b32 r, 1" + repeated("+1", 100'000) + "; }", "no error");
  expect(body + repeated("{", 199) + repeated("}", 199) + "}", "no error");
  expect(body + repeated("{", 100'000), "t:5:201: " + too_deep + "'{'");
  expect(body + "mov.b32 r, " + repeated("[", 100'000), "t:5:13: expected an operand, found '['");
  expect(kHead + ".section .s " + repeated("{", 100'000), "t:4:13: '{' without its '}'");
  expect(kHead + ".global .b8 a" + repeated("[1]", 201) + ";", "t:4:614: " + too_deep + "'['");
  expect(kHead + ".global .b8 a" + repeated("[1]", 200) + " = " + repeated("{", 100'000),
         "t:4:817: more braces than 'a' has dimensions");
  expect(kHead + ".func f(); " + repeated("f", 100'000),
         "t:4:12: expected a declaration, a function or a directive, found '" + repeated("f", 60) + "…'");
  expect(body + "op" + repeated(".m", 65'536) + "; }", "t:5:1: 'op' has too many modifiers");
  expect(body + "op 1" + repeated(",1", 65'536) + "; }", "t:5:1: 'op' has too many operands");

  Limits small;
  small.text = 100;
  expect(repeated(" ", 101), "t:1:1: the text has 101 bytes, at most 100 are read", small);
  small = {};
  small.registers = 100;
  expect(kHead + ".func f() { .reg .b32 a<60>; }\n.func g() { .reg .b32 a<60>; }",
         "t:5:23: a module may have 100 registers, 'a' makes it more", small);
  small = {};
  small.group_variables = 100;
  expect(kHead + ".func f() { .shared .b32 a<60>; }\n.func g() { .shared .b32 a<60>; }",
         "t:5:26: more than 100 variables, at 'a'", small);
  small = {};
  small.names = 1000;
  expect(kHead + ".func f() { .reg .b32 a<60>; }\n.func g() { .reg .b32 a<60>, b<60>; }",
         "t:5:30: the names that 'b' stands for are too long", small);
  expect(body + ".reg .b32 " + repeated("n", 1'000'000) + "<900000>; }",
         "t:5:11: the names that '" + repeated("n", 60) + "…' stands for are too long");
  expect(body + ".reg .b32 a1<4>; mov.b32 r, a" + repeated("1", 1'000'000) + "; }",
         "t:5:29: unknown name 'a" + repeated("1", 59) + "…'");
  small = {};
  small.initialised = 12;
  expect(kHead + ".global .u32 a[2] = {1}; .global .u32 b[] = {1}; .global .u32 c = 1;",
         "t:4:63: variables with a value may have 12 bytes together, 'c' makes it more", small);
  expect(kHead + ".global .u32 a[] = {1, 2, 3, 4};", "t:4:30: more values than 'a' has elements, at '4'",
         small);
}

}  // namespace
