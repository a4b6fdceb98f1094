"""Messages with a delivery time of their own, on any log.

They wait as messages of the system topic `rmq_sys_wheel_timer`, which is the truth:
`waiting` is what a message there looks like. `index` keeps them by time, `intake`
fills it from the topic, `delivery` puts what is due where it belongs, `timer` joins
these.
"""
