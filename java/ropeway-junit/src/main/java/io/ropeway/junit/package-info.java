/** A Ropeway gateway in Java tests: a process of its own, with an extension for JUnit. */
package io.ropeway.junit;
