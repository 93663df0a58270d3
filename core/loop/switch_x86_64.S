/* Changing stacks on x86-64 (System V ABI): saves what a called function must preserve (rbx, rbp, r12-r15, the control
 * words of SSE and x87) on the stack that is left, and takes the same from the other.
 *
 * No .note.gnu.property stands here on purpose: an executable with this file must not be run with a shadow stack, which
 * a change of stacks would break. */
#if defined(__x86_64__) && !defined(SANDGATE_UCONTEXT)

        .text

/* void context_switch(struct context *from (rdi), const struct context *to (rsi)) */
        .globl  context_switch
        .hidden context_switch
        .type   context_switch, @function
        .p2align 4
context_switch:
        .cfi_startproc
        pushq   %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbp, 0
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbx, 0
        pushq   %r12
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r12, 0
        pushq   %r13
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r13, 0
        pushq   %r14
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r14, 0
        pushq   %r15
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r15, 0
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        stmxcsr (%rsp)
        fnstcw  4(%rsp)
        movq    %rsp, (%rdi)

        movq    (%rsi), %rsp            /* the same layout on the other stack */
        ldmxcsr (%rsp)
        fldcw   4(%rsp)
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        popq    %r15
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r15
        popq    %r14
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r14
        popq    %r13
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r13
        popq    %r12
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r12
        popq    %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbx
        popq    %rbp
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbp
        ret
        .cfi_endproc
        .size   context_switch, . - context_switch

/* Where a new stack begins: context_init() left the function in r12 and its argument in r13. The undefined rip ends
 * every backtrace here. */
        .type   context_begin, @function
        .p2align 4
context_begin:
        .cfi_startproc
        .cfi_undefined %rip
        movq    %r13, %rdi
        xorl    %ebp, %ebp
        callq   *%r12
        ud2
        .cfi_endproc
        .size   context_begin, . - context_begin

/* void context_init(struct context * (rdi), void *base (rsi), size_t size (rdx), void (*entry)(void *) (rcx),
 *                   void *arg (r8)) */
        .globl  context_init
        .hidden context_init
        .type   context_init, @function
        .p2align 4
context_init:
        .cfi_startproc
        leaq    (%rsi,%rdx), %rax
        andq    $-16, %rax
        subq    $80, %rax               /* after the pops and the return, rsp is a multiple of 16 */
        stmxcsr (%rax)
        fnstcw  4(%rax)
        xorl    %edx, %edx
        movq    %rdx, 8(%rax)           /* r15 */
        movq    %rdx, 16(%rax)          /* r14 */
        movq    %r8, 24(%rax)           /* r13: the argument */
        movq    %rcx, 32(%rax)          /* r12: the function */
        movq    %rdx, 40(%rax)          /* rbx */
        movq    %rdx, 48(%rax)          /* rbp */
        leaq    context_begin(%rip), %rcx
        movq    %rcx, 56(%rax)          /* where context_switch returns to */
        movq    %rdx, 64(%rax)
        movq    %rdx, 72(%rax)
        movq    %rax, (%rdi)
        ret
        .cfi_endproc
        .size   context_init, . - context_init

#endif

        .section .note.GNU-stack, "", @progbits
