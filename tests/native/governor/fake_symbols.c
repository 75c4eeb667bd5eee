/* Every function of the table as a weak one that answers MARK + its index; fake_driver.c has the
 * strong ones. */
#define X(index, symbol, base, version, per_thread, class)                                         \
    __asm__(".text\n.weak " #symbol "\n.type " #symbol ",@function\n" #symbol ":\n  movl $100000+" #index ", %eax\n  ret\n");
#include FAKE_SYMBOLS

int fake_symbols_are_linked = 1;
