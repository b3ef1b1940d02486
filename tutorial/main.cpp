// main: of a lesson's program, whose own `main` is in the library of lessons.

int LESSON_MAIN();

int main() { return LESSON_MAIN(); }
