package io.ropeway.junit;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Runs a gateway while the tests of a class run.
 *
 * <p>Constructors and methods get it as a parameter of type {@link RopewayGateway}.
 */
@Documented
@Inherited
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.TYPE, ElementType.ANNOTATION_TYPE})
@ExtendWith(RopewayExtension.class)
public @interface RopewayTest {
    /**
     * Names the topics that are there before clients can come.
     *
     * @return {@code NAME} or {@code NAME:QUEUES} each
     */
    String[] topics() default {};

    /**
     * Says whether gRPC clients are served, too.
     *
     * @return whether they are; {@code ropeway[grpc]} must be installed then
     */
    boolean grpc() default false;

    /**
     * Gives further options of {@code ropeway serve}.
     *
     * @return options as on the command line
     */
    String[] options() default {};
}
