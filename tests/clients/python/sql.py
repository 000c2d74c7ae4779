"""A connection of PyMySQL to the server under test, and answers that can be compared."""

import pymysql


def come(server, user="root", **more):
    return pymysql.connect(host="127.0.0.1", port=server.mysql_port, user=user, connect_timeout=60, read_timeout=60, ssl_disabled=True, autocommit=True, **more)


def ask(connection, sql, *values):
    """The rows, or the number of the error."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql, values or None)
            return [list(row) for row in cursor.fetchall()]
    except pymysql.Error as error:
        return error.args[0]
